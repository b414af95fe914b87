// SPDX-License-Identifier: Apache-2.0
// MaxPool and its gradient. Indices that only the gradient reads take their short form. The
// gradient of GlobalMaxPool, which rules write in five nodes, is one.
//
// ReluGrad behind MaxPoolGrad goes before it: the largest of a window is above 0 where the element
// that it was is, so the gradient is masked by what MaxPool gave, which is smaller, and what it
// read need not be kept for the backward half.
#include <string.h>

#include "passes/fuse.h"

enum { DY, Y };           // inputs of ReluGrad
enum { INDICES = 1 };     // input of MaxPoolGrad, output of MaxPool
enum { GRAD_INPUTS = 2 }; // of both gradients

// The MaxPool that read what `relu_grad` masks by, when its gradient is what is masked.
static const ot_node *pool_of(const ot__fusing *f, const ot_node *relu_grad, const ot_node *grad)
{
    const ot_node *pool;

    if (!ot__node_is(grad, "", "MaxPoolGrad") ||
        ot__fuse_only_reader(f, grad->outputs[0]) != relu_grad)
        return NULL;
    pool = grad->inputs[INDICES]->producer;
    return ot__node_is(pool, "", "MaxPool") && pool->n_outputs > INDICES &&
                   pool->outputs[INDICES] == grad->inputs[INDICES] && pool->outputs[0] != NULL &&
                   pool->inputs[0] == relu_grad->inputs[Y]
               ? pool
               : NULL;
}

// The node `like` once more.
static ot_status add_again(ot__fusing *f, const ot_node *like, ot_value *const *inputs, ot_value *y)
{
    ot__builder b = {.graph = f->graph};
    ot_node *node =
        ot__op_build(&b, like->domain, like->op_type, like->name, inputs, GRAD_INPUTS, &y, 1);

    if (node)
        ot__build_made(&b, ot__node_copy_attrs(node, like));
    ot__op_settle(&b, node);
    return b.status;
}

static ot_status move_mask(ot__fusing *f, ot_node *relu_grad)
{
    const ot_node *pool;
    ot_value *masked;
    ot_node *grad;

    if (!ot__node_is(relu_grad, "com.microsoft", "ReluGrad"))
        return OT_OK;
    grad = relu_grad->inputs[DY]->producer;
    pool = pool_of(f, relu_grad, grad);
    if (pool == NULL)
        return OT_OK;
    masked = ot__graph_new_value(f->graph, relu_grad->outputs[0]->name);
    OT_TRY(ot__made(masked != NULL));
    ot__node_detach(relu_grad);
    ot__node_detach(grad);
    OT_TRY(add_again(f, relu_grad, (ot_value *[]){grad->inputs[DY], pool->outputs[0]}, masked));
    return add_again(f, grad, (ot_value *[]){masked, grad->inputs[INDICES]}, relu_grad->outputs[0]);
}

// ---- short indices ----

static bool same_ints(const ot_node *a, const ot_node *b, const char *name)
{
    int n_a, n_b;
    const int64_t *a_ints = ot_attr_ints(a, name, &n_a), *b_ints = ot_attr_ints(b, name, &n_b);

    return n_a == n_b && (n_a == 0 || memcmp(a_ints, b_ints, (size_t)n_a * sizeof *a_ints) == 0);
}

// Both slide the same window over the same planes.
static bool same_window(const ot_node *pool, const ot_node *grad)
{
    const ot_value *x = pool->inputs[0], *dx = grad->outputs[0];

    return x->has_shape && dx->has_shape && ot__shape_is_static(&x->shape) &&
           ot__shape_equal(&x->shape, &dx->shape) && same_ints(pool, grad, "kernel_shape") &&
           same_ints(pool, grad, "strides") && same_ints(pool, grad, "pads") &&
           same_ints(pool, grad, "dilations") &&
           strcmp(ot_attr_string(pool, "auto_pad"), ot_attr_string(grad, "auto_pad")) == 0 &&
           ot_attr_int(pool, "ceil_mode") == ot_attr_int(grad, "ceil_mode");
}

static bool fits_short(const ot_value *x)
{
    int64_t n;

    return (x->dtype == OT_F32 || x->dtype == OT_F64 || ot__dtype_is_narrow(x->dtype)) &&
           ot__shape_count(&x->shape, &n) && n <= INT32_MAX;
}

static ot_status add_short(ot__fusing *f, const char *op_type, const ot_node *like,
                           ot_value **inputs, int n_inputs, ot_value **outputs, int n_outputs)
{
    ot_node *node;

    OT_TRY(ot__fuse_add(f, op_type, like->name, inputs, n_inputs, outputs, n_outputs, &node));
    OT_TRY(ot__made(ot__node_copy_attrs(node, like)));
    return ot__op_infer(node);
}

static ot_status shorten(ot__fusing *f, ot_node *pool)
{
    ot_value *maxima;
    ot_node *grad;

    if (!ot__node_is(pool, "", "MaxPool") || pool->n_outputs <= INDICES ||
        pool->outputs[INDICES] == NULL || pool->outputs[0] == NULL ||
        ot_attr_int(pool, "storage_order") != 0)
        return OT_OK;
    grad = ot__fuse_only_reader(f, pool->outputs[INDICES]);
    if (!ot__node_is(grad, "", "MaxPoolGrad") || grad->inputs[INDICES] != pool->outputs[INDICES] ||
        !same_window(pool, grad) || !fits_short(pool->inputs[0]))
        return OT_OK;
    maxima = ot__graph_new_value(f->graph, pool->outputs[INDICES]->name);
    OT_TRY(ot__made(maxima != NULL));
    ot__node_detach(pool);
    ot__node_detach(grad);
    OT_TRY(add_short(f, "MaxPoolShort", pool, pool->inputs, 1,
                     (ot_value *[]){pool->outputs[0], maxima}, 2));
    return add_short(f, "MaxPoolShortGrad", grad, (ot_value *[]){grad->inputs[DY], maxima}, 2,
                     grad->outputs, 1);
}

// ---- equal shares ----

// mask * (dY / count), where the mask has ones where X is its largest element and `count` is their
// number.
typedef struct equal_shares {
    ot_node *cast, *equal, *quotient, *sum;
    const ot_node *pool;
} equal_shares;

static bool match_equal_shares(const ot__fusing *f, const ot_node *mul, equal_shares *s)
{
    s->cast = mul->inputs[0]->producer;
    s->quotient = mul->inputs[1]->producer;
    if (!ot__node_is(s->cast, "", "Cast") || !ot__node_is(s->quotient, "", "Div") ||
        ot__fuse_only_reader(f, s->quotient->outputs[0]) != mul)
        return false;
    s->equal = s->cast->inputs[0]->producer;
    s->sum = s->quotient->inputs[1]->producer;
    if (!ot__node_is(s->equal, "", "Equal") || !ot__node_is(s->sum, "", "ReduceSum") ||
        s->sum->inputs[0] != mul->inputs[0] ||
        ot__fuse_only_reader(f, s->equal->outputs[0]) != s->cast ||
        ot__fuse_only_reader(f, s->sum->outputs[0]) != s->quotient ||
        s->cast->outputs[0]->is_output || ot__uses_count(&f->uses, s->cast->outputs[0]) != 2)
        return false;
    s->pool = s->equal->inputs[1]->producer;
    return ot__node_is(s->pool, "", "GlobalMaxPool") && s->pool->inputs[0] == s->equal->inputs[0] &&
           ot__values_same_shape(s->sum->outputs[0], s->pool->outputs[0]) &&
           ot__values_same_shape(s->quotient->inputs[0], s->pool->outputs[0]);
}

static ot_status share_equally(ot__fusing *f, ot_node *mul)
{
    equal_shares s;
    ot_node *node;

    if (!ot__node_is(mul, "", "Mul") || !match_equal_shares(f, mul, &s))
        return OT_OK;
    ot__node_detach(mul);
    ot__node_detach(s.quotient);
    ot__node_detach(s.sum);
    ot__node_detach(s.cast);
    ot__node_detach(s.equal);
    OT_TRY(
        ot__fuse_add(f, "GlobalMaxPoolGrad", mul->name,
                     (ot_value *[]){s.quotient->inputs[0], s.pool->inputs[0], s.pool->outputs[0]},
                     3, mul->outputs, 1, &node));
    return ot__op_infer(node);
}

ot_status ot__fuse_pool(ot_model *model)
{
    OT_TRY(ot__fuse_each(model, share_equally));
    OT_TRY(ot__fuse_each(model, move_mask));
    return ot__fuse_each(model, shorten);
}
