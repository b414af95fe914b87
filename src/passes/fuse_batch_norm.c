// BatchNormInternal + Relu, and BatchNormInternal + Add + Relu as at the end of a residual block,
// become BatchNormRelu; ReluGrad + BatchNormalizationGrad become BatchNormReluGrad. The sum before
// Relu is then never stored, and the gradient behind it only where others read it.
#include <string.h>

#include "passes/fuse.h"

enum { BN_INPUTS = 5, BN_OUTPUTS = 5, GRAD_INPUTS = 5, GRAD_OUTPUTS = 3 };
enum { BN_BIAS = 2, BN_SAVED_MEAN = 3, GRAD_X = 1, GRAD_MEAN = 3, GRAD_Y = 5, GRAD_BIAS = 6 };

typedef struct fusing {
    ot_graph *graph;
    ot__uses uses;
    bool *is_gone; // per node (ot_node.index)
    int n_indexed; // nodes that were there at first
} fusing;

static bool is_op(const ot_node *node, const char *domain, const char *op_type)
{
    return strcmp(node->op_type, op_type) == 0 && strcmp(node->domain, domain) == 0;
}

// The node that alone reads `value`; NULL when there are others or it is gone already.
static ot_node *only_reader(const fusing *f, const ot_value *value)
{
    const ot__use *use = &f->uses.use[f->uses.first[value->index]];

    if (value->is_output || ot__uses_count(&f->uses, value) != 1 || use->i_input < 0 ||
        f->is_gone[use->node->index])
        return NULL;
    return use->node;
}

static void drop(fusing *f, ot_node *node)
{
    f->is_gone[node->index] = true;
    ot__graph_remove_node(f->graph, node);
}

static ot_status add_fused(fusing *f, const char *op_type, const char *name, ot_value **inputs,
                           int n_inputs, ot_value **outputs, int n_outputs, ot_node **out)
{
    ot_model *model = f->graph->model;
    ot_node *node;

    if (ot__model_opset(model, "ai.onnxtrain") == 0)
        OT_TRY(ot__model_set_opset(model, "ai.onnxtrain", 1));
    node = ot__graph_add_node(f->graph, "ai.onnxtrain", op_type, name, inputs, n_inputs, outputs,
                              n_outputs);
    if (node == NULL)
        return OT_ERR_NO_MEMORY;
    node->index = f->n_indexed; // is_gone has one entry for all new nodes
    *out = node;
    return ot__op_lookup(model, node, &node->op);
}

// ---- forward ----

static ot_status replace_forward(fusing *f, ot_node *norm, ot_node *add, ot_node *relu)
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
    drop(f, norm);
    drop(f, relu);
    if (add != NULL)
        drop(f, add);
    OT_TRY(add_fused(f, "BatchNormRelu", norm->name, inputs, BN_INPUTS + (add != NULL), outputs,
                     norm->n_outputs, &fused));
    if (!ot__node_set_float(fused, "epsilon", epsilon) ||
        !ot__node_set_float(fused, "momentum", momentum))
        return OT_ERR_NO_MEMORY;
    return ot__op_infer(fused);
}

static bool is_plain_sum(const ot_node *add, const ot_value *y)
{
    return (is_op(add, "", "Add") || is_op(add, "", "Sum")) && add->n_inputs == 2 &&
           add->inputs[0] != add->inputs[1] && add->inputs[0]->has_shape &&
           add->inputs[1]->has_shape &&
           ot__shape_equal(&add->inputs[0]->shape, &add->inputs[1]->shape) && y->has_shape;
}

static ot_status fuse_forward(fusing *f, ot_node *norm)
{
    ot_node *next, *add = NULL;

    if (norm->n_inputs != BN_INPUTS || norm->n_outputs > BN_OUTPUTS || norm->outputs[0] == NULL ||
        ot_attr_int(norm, "training_mode") == 0)
        return OT_OK;
    next = only_reader(f, norm->outputs[0]);
    if (next != NULL && is_plain_sum(next, norm->outputs[0])) {
        add = next;
        next = only_reader(f, add->outputs[0]);
    }
    if (next == NULL || !is_op(next, "", "Relu"))
        return OT_OK;
    return replace_forward(f, norm, add, next);
}

// ---- backward ----

// The bias of the normalisation that alone made y, from which y can be computed again; else NULL.
static ot_value *bias_of(const ot_value *y, const ot_node *grad)
{
    const ot_node *norm = y->producer;

    return norm != NULL && is_op(norm, "ai.onnxtrain", "BatchNormRelu") &&
                   norm->n_inputs == BN_INPUTS && norm->n_outputs > BN_SAVED_MEAN &&
                   norm->inputs[0] == grad->inputs[GRAD_X] &&
                   norm->outputs[BN_SAVED_MEAN] == grad->inputs[GRAD_MEAN]
               ? norm->inputs[BN_BIAS]
               : NULL;
}

static ot_status replace_backward(fusing *f, ot_node *grad, ot_node *relu_grad)
{
    ot_value *inputs[GRAD_BIAS + 1] = {NULL}, *outputs[GRAD_OUTPUTS + 1] = {NULL};
    ot_value *g = relu_grad->outputs[0], *y = relu_grad->inputs[1];
    ot_value *bias = bias_of(y, grad);
    const bool is_shared = only_reader(f, g) == NULL;
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
    drop(f, grad);
    drop(f, relu_grad);
    OT_TRY(add_fused(f, "BatchNormReluGrad", grad->name, inputs,
                     bias != NULL ? GRAD_BIAS + 1 : GRAD_Y + 1, outputs,
                     is_shared ? GRAD_OUTPUTS + 1 : grad->n_outputs, &fused));
    return ot__op_infer(fused);
}

static ot_status fuse_backward(fusing *f, ot_node *grad)
{
    ot_node *relu_grad;

    if (grad->n_inputs != GRAD_INPUTS || grad->n_outputs > GRAD_OUTPUTS || grad->inputs[0] == NULL)
        return OT_OK;
    relu_grad = grad->inputs[0]->producer;
    if (relu_grad == NULL || f->is_gone[relu_grad->index] ||
        !is_op(relu_grad, "com.microsoft", "ReluGrad"))
        return OT_OK;
    return replace_backward(f, grad, relu_grad);
}

// ---- all ----

static ot_status fuse_all(fusing *f)
{
    ot__arena *arena = f->graph->model->arena;
    ot_node **nodes =
        ot__arena_memdup(arena, f->graph->nodes, (size_t)f->n_indexed * sizeof *nodes);

    f->is_gone = ot__arena_alloc(arena, (size_t)f->n_indexed + 1);
    if (nodes == NULL || f->is_gone == NULL)
        return OT_ERR_NO_MEMORY;
    for (int n = 0; n < f->n_indexed; n++) {
        if (f->is_gone[n])
            continue;
        if (is_op(nodes[n], "com.microsoft", "BatchNormInternal"))
            OT_TRY(fuse_forward(f, nodes[n]));
        else if (is_op(nodes[n], "com.microsoft", "BatchNormalizationGrad"))
            OT_TRY(fuse_backward(f, nodes[n]));
    }
    return ot__graph_sort(f->graph);
}

ot_status ot__fuse_batch_norm(ot_model *model)
{
    fusing f = {.graph = model->graph, .n_indexed = model->graph->n_nodes};
    ot_status st;

    if (model->graph->n_nodes == 0)
        return OT_OK;
    OT_TRY(ot__uses_build(model->graph, &f.uses));
    st = fuse_all(&f);
    ot__uses_deinit(&f.uses);
    return st;
}
