// SPDX-License-Identifier: Apache-2.0
// BatchNormInternal + Relu, and BatchNormInternal + Add + Relu as at the end of a residual block,
// become BatchNormRelu; ReluGrad + BatchNormalizationGrad become BatchNormReluGrad. The sum before
// Relu is then never stored, and the gradient behind it only where others read it.
#include <string.h>

#include "passes/fuse.h"

enum { BN_INPUTS = 5, BN_OUTPUTS = 5, GRAD_INPUTS = 5, GRAD_OUTPUTS = 3 };
enum { BN_BIAS = 2, BN_SAVED_MEAN = 3, GRAD_X = 1, GRAD_MEAN = 3, GRAD_Y = 5, GRAD_BIAS = 6 };

// ---- forward ----

static ot_status replace_forward(ot__fusing *f, ot_node *norm, ot_node *add, ot_node *relu)
{
    ot_value *inputs[BN_INPUTS + 1], *outputs[BN_OUTPUTS] = {NULL};
    const float epsilon = ot_attr_float(norm, "epsilon"),
                momentum = ot_attr_float(norm, "momentum");
    ot_node *fused;

    memcpy(inputs, norm->inputs, BN_INPUTS * sizeof *inputs);
    for (int i = 0; i < norm->n_outputs; i++)
        outputs[i] = norm->outputs[i];
    outputs[0] = relu->outputs[0];
    if (add != NULL)
        inputs[BN_INPUTS] = add->inputs[add->inputs[0] == norm->outputs[0]];
    ot__node_detach(norm);
    ot__node_detach(relu);
    if (add != NULL)
        ot__node_detach(add);
    OT_TRY(ot__fuse_add(f, "BatchNormRelu", norm->name, inputs, BN_INPUTS + (add != NULL), outputs,
                        norm->n_outputs, &fused));
    OT_TRY(ot__made(ot__node_set_float(fused, "epsilon", epsilon) &&
                    ot__node_set_float(fused, "momentum", momentum)));
    return ot__op_infer(fused);
}

static bool is_plain_sum(const ot_node *add, const ot_value *y)
{
    return (ot__node_is(add, "", "Add") || ot__node_is(add, "", "Sum")) && add->n_inputs == 2 &&
           add->inputs[0] != add->inputs[1] && add->inputs[0]->has_shape &&
           add->inputs[1]->has_shape &&
           ot__shape_equal(&add->inputs[0]->shape, &add->inputs[1]->shape) && y->has_shape;
}

static ot_status fuse_forward(ot__fusing *f, ot_node *norm)
{
    ot_node *next, *add = NULL;

    if (norm->n_inputs != BN_INPUTS || norm->n_outputs > BN_OUTPUTS || norm->outputs[0] == NULL ||
        ot_attr_int(norm, "training_mode") == 0)
        return OT_OK;
    next = ot__fuse_only_reader(f, norm->outputs[0]);
    if (next != NULL && is_plain_sum(next, norm->outputs[0])) {
        add = next;
        next = ot__fuse_only_reader(f, add->outputs[0]);
    }
    if (!ot__node_is(next, "", "Relu"))
        return OT_OK;
    return replace_forward(f, norm, add, next);
}

// ---- backward ----

// The bias of the normalisation that alone made y, from which y can be computed again; else NULL.
static ot_value *bias_of(const ot_value *y, const ot_node *grad)
{
    const ot_node *norm = y->producer;

    return ot__node_is(norm, "ai.onnxtrain", "BatchNormRelu") && norm->n_inputs == BN_INPUTS &&
                   norm->n_outputs > BN_SAVED_MEAN && norm->inputs[0] == grad->inputs[GRAD_X] &&
                   norm->outputs[BN_SAVED_MEAN] == grad->inputs[GRAD_MEAN]
               ? norm->inputs[BN_BIAS]
               : NULL;
}

static ot_status replace_backward(ot__fusing *f, ot_node *grad, ot_node *relu_grad)
{
    ot_value *inputs[GRAD_BIAS + 1] = {NULL}, *outputs[GRAD_OUTPUTS + 1] = {NULL};
    ot_value *g = relu_grad->outputs[0], *y = relu_grad->inputs[1];
    ot_value *bias = bias_of(y, grad);
    const bool is_shared = ot__fuse_only_reader(f, g) == NULL;
    ot_node *fused;

    memcpy(inputs, grad->inputs, GRAD_INPUTS * sizeof *inputs);
    inputs[0] = relu_grad->inputs[0];
    if (bias != NULL)
        inputs[GRAD_BIAS] = bias;
    else
        inputs[GRAD_Y] = y;
    for (int i = 0; i < grad->n_outputs; i++)
        outputs[i] = grad->outputs[i];
    if (is_shared)
        outputs[GRAD_OUTPUTS] = g;
    ot__node_detach(grad);
    ot__node_detach(relu_grad);
    OT_TRY(ot__fuse_add(f, "BatchNormReluGrad", grad->name, inputs,
                        bias != NULL ? GRAD_BIAS + 1 : GRAD_Y + 1, outputs,
                        is_shared ? GRAD_OUTPUTS + 1 : grad->n_outputs, &fused));
    return ot__op_infer(fused);
}

static ot_status fuse_backward(ot__fusing *f, ot_node *grad)
{
    ot_node *relu_grad;

    if (grad->n_inputs != GRAD_INPUTS || grad->n_outputs > GRAD_OUTPUTS || grad->inputs[0] == NULL)
        return OT_OK;
    relu_grad = grad->inputs[0]->producer;
    if (relu_grad == NULL || relu_grad->graph == NULL ||
        !ot__node_is(relu_grad, "com.microsoft", "ReluGrad"))
        return OT_OK;
    return replace_backward(f, grad, relu_grad);
}

static ot_status fuse_batch_norm(ot__fusing *f, ot_node *node)
{
    if (ot__node_is(node, "com.microsoft", "BatchNormInternal"))
        return fuse_forward(f, node);
    if (ot__node_is(node, "com.microsoft", "BatchNormalizationGrad"))
        return fuse_backward(f, node);
    return OT_OK;
}

ot_status ot__fuse_batch_norm(ot_model *model)
{
    return ot__fuse_each(model, fuse_batch_norm);
}
