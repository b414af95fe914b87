// SPDX-License-Identifier: Apache-2.0
// When a node hands on its first input unchanged.
#include "op/op.h"

bool ot__identity_always(const ot_node *node)
{
    (void)node;
    return true;
}

bool ot__identity_of_type(const ot_node *node)
{
    return node->inputs[0]->dtype == node->outputs[0]->dtype;
}

bool ot__values_same_shape(const ot_value *x, const ot_value *y)
{
    if (!x->has_shape || !y->has_shape || x->shape.ndim != y->shape.ndim)
        return false;
    for (int k = 0; k < x->shape.ndim; k++)
        if (!ot__dim_same(x->shape.dim[k], y->shape.dim[k]))
            return false;
    return true;
}

bool ot__identity_of_shape(const ot_node *node)
{
    return ot__values_same_shape(node->inputs[0], node->outputs[0]);
}

bool ot__node_is_identity(const ot_node *node)
{
    return node->op->identity_when && node->n_inputs > 0 && node->n_outputs > 0 &&
           node->inputs[0] && node->outputs[0] && node->op->identity_when(node);
}
