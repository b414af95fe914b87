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

const ot_tensor *ot__match_constant_value(const ot_value *value)
{
    if (value == NULL)
        return NULL;
    return value->constant != NULL && !value->is_input ? value->constant
                                                       : ot__match_constant(value->producer);
}

bool ot__match_number(const ot_value *value, double *number)
{
    const ot_tensor *tensor = ot__match_constant_value(value);

    if (tensor == NULL || ot_tensor_count(tensor) != 1)
        return false;
    *number = ot__tensor_get_f64(tensor, 0);
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

int64_t ot__match_int(const ot_node *node, const char *name, int64_t otherwise)
{
    const ot_attr *attr = ot__node_attr(node, name);

    return attr && attr->kind == OT_ATTR_INT ? attr->i : otherwise;
}

int64_t ot__match_missing_bias(const ot_node *node)
{
    const ot_value *weight = node->n_inputs > 1 ? node->inputs[1] : NULL;
    const ot_attr *beta = ot__node_attr(node, "beta");
    const int64_t *dim, group = ot__match_int(node, "group", 1);

    if (!weight || !weight->constant || !ot__dtype_is_float(weight->dtype) ||
        weight->constant->shape.ndim < 2 ||
        (node->n_inputs > OT_MATCH_BIAS && node->inputs[OT_MATCH_BIAS]))
        return 0;
    dim = weight->constant->shape.dim;
    if (ot__node_is(node, "", "Conv"))
        return dim[0];
    if (ot__node_is(node, "", "ConvTranspose"))
        return group >= 1 && group <= dim[0] ? dim[1] * group : 0;
    if (!ot__node_is(node, "", "Gemm") || (beta && beta->f != 1.0F))
        return 0;
    return dim[ot__match_int(node, "transB", 0) != 0 ? 0 : 1];
}
