// SPDX-License-Identifier: Apache-2.0
// What exporters write as nodes: copies where two names are the same tensor, tensors that are no
// initializers, and parameters that no layer reads, which are added or multiplied.
#include <string.h>

#include "passes/passes.h"

bool ot__match_copy(const ot_node *node)
{
    return ot__node_is(node, "", "Identity");
}

bool ot__match_cast(const ot_node *node)
{
    return ot__node_is(node, "", "Cast");
}

ot_tensor *ot__match_constant(const ot_node *node)
{
    return ot__constant_of_node(node);
}

bool ot__match_number(const ot_value *value, double *number)
{
    if (value == NULL || value->constant == NULL || value->is_input ||
        ot_tensor_count(value->constant) != 1)
        return false;
    *number = ot__tensor_get_f64(value->constant, 0);
    return true;
}

bool ot__match_unit_norm(const ot_node *node)
{
    return ot__node_is(node, "", "InstanceNormalization");
}

const char *ot__match_leaf(const ot_node *node)
{
    return strcmp(node->op_type, "Add") == 0   ? "bias"
           : strcmp(node->op_type, "Mul") == 0 ? "weight"
                                               : "";
}
