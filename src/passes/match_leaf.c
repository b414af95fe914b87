// SPDX-License-Identifier: Apache-2.0
// What a parameter is likely to be called that no layer reads: one that is added or multiplied.
#include <string.h>

#include "passes/passes.h"

const char *ot__match_leaf(const ot_node *node)
{
    return strcmp(node->op_type, "Add") == 0   ? "bias"
           : strcmp(node->op_type, "Mul") == 0 ? "weight"
                                               : "";
}
