// ReluGrad behind MaxPoolGrad goes before it: the largest of a window is above 0 where the element
// that it was is, so the gradient is masked by what MaxPool gave, which is smaller, and what it
// read need not be kept for the backward half.
#include "passes/fuse.h"

enum { DY, Y };           // inputs of ReluGrad
enum { INDICES = 1 };     // input of MaxPoolGrad, output of MaxPool
enum { GRAD_INPUTS = 2 }; // of both gradients

// The MaxPool that read what `relu_grad` masks by, when its gradient is what is masked.
static const ot_node *pool_of(const ot__fusing *f, const ot_node *relu_grad, const ot_node *grad)
{
    const ot_node *pool;

    if (!ot__fuse_is_op(grad, "", "MaxPoolGrad") ||
        ot__fuse_only_reader(f, grad->outputs[0]) != relu_grad)
        return NULL;
    pool = grad->inputs[INDICES]->producer;
    return ot__fuse_is_op(pool, "", "MaxPool") && pool->n_outputs > INDICES &&
                   pool->outputs[INDICES] == grad->inputs[INDICES] && pool->outputs[0] != NULL &&
                   pool->inputs[0] == relu_grad->inputs[Y]
               ? pool
               : NULL;
}

// The node `like` once more.
static ot_status add_again(ot__fusing *f, const ot_node *like, ot_value *const *inputs, ot_value *y)
{
    ot_node *node = ot__graph_add_node(f->graph, like->domain, like->op_type, like->name, inputs,
                                       GRAD_INPUTS, &y, 1);

    if (node == NULL || !ot__node_copy_attrs(node, like))
        return OT_ERR_NO_MEMORY;
    node->index = f->n_indexed;
    node->op = like->op;
    return ot__op_infer(node);
}

static ot_status fuse(ot__fusing *f, ot_node *relu_grad)
{
    const ot_node *pool;
    ot_value *masked;
    ot_node *grad;

    if (!ot__fuse_is_op(relu_grad, "com.microsoft", "ReluGrad"))
        return OT_OK;
    grad = relu_grad->inputs[DY]->producer;
    pool = pool_of(f, relu_grad, grad);
    if (pool == NULL)
        return OT_OK;
    masked = ot__graph_new_value(f->graph, relu_grad->outputs[0]->name);
    if (masked == NULL)
        return OT_ERR_NO_MEMORY;
    ot__fuse_drop(f, relu_grad);
    ot__fuse_drop(f, grad);
    OT_TRY(add_again(f, relu_grad, (ot_value *[]){grad->inputs[DY], pool->outputs[0]}, masked));
    return add_again(f, grad, (ot_value *[]){masked, grad->inputs[INDICES]}, relu_grad->outputs[0]);
}

ot_status ot__fuse_pool(ot_model *model)
{
    return ot__fuse_each(model, fuse);
}
