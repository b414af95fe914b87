// SPDX-License-Identifier: Apache-2.0
// Tensors that a graph has as nodes, not as initializers.
#include <string.h>

#include "passes/passes.h"

ot_tensor *ot__match_constant(const ot_node *node)
{
    const ot_attr *value = ot__node_is(node, "", "Constant") ? ot__node_attr(node, "value") : NULL;

    return value ? value->t : NULL;
}
