// SPDX-License-Identifier: Apache-2.0
// Tensors that a graph has as nodes, not as initializers.
#include <string.h>

#include "passes/passes.h"

ot_tensor *ot__match_constant(const ot_node *node)
{
    const ot_attr *value = node && node->domain[0] == '\0' && strcmp(node->op_type, "Constant") == 0
                               ? ot__node_attr(node, "value")
                               : NULL;

    return value ? value->t : NULL;
}
