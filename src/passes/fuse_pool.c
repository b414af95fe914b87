// SPDX-License-Identifier: Apache-2.0
// MaxPool and its gradient. Indices that only the gradient reads take their short form. The
// gradient of GlobalMaxPool, which rules write in six nodes, is one.
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

// ---- the first of the largest elements of a plane ----

// Reshape(Where(0, 1, .. == ArgMax(Reshape(X)), Reshape(dY), 0)): of three axes no Reshape is left.
typedef struct first_maximum {
    ot_node *equal, *arg_max;
    ot_value *x, *dy, *y, *dx;
} first_maximum;

enum { MASK, ROWS, ZERO };   // inputs of Where
enum { MAX_X_READERS = 64 }; // that are looked at

static ot_value *before_reshape(ot_value *value)
{
    return ot__node_is(value->producer, "", "Reshape") ? value->producer->inputs[0] : value;
}

static bool counts_up(const ot_value *value, int64_t n)
{
    const ot_tensor *tensor = value->constant;

    if (tensor == NULL || tensor->dtype != OT_I64 || ot_tensor_count(tensor) != n)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (ot__tensor_get_i64(tensor, i) != i)
            return false;
    return true;
}

// What GlobalMaxPool makes of x; NULL: there is no such node.
static ot_value *maximum_of(const ot__fusing *f, const ot_value *x)
{
    if (ot__uses_count(&f->uses, x) > MAX_X_READERS)
        return NULL;
    for (int u = ot__uses_first(&f->uses, x); u < ot__uses_end(&f->uses, x); u++) {
        const ot_node *node = f->uses.use[u].node;

        if (node->graph != NULL && ot__node_is(node, "", "GlobalMaxPool"))
            return node->outputs[0];
    }
    return NULL;
}

// Whether `flat` is x, with its spatial axes as one.
static bool is_flat(const ot_value *flat, const ot_value *x)
{
    return flat->has_shape && x->has_shape && flat->shape.ndim == 3 && x->shape.ndim >= 3 &&
           ot__shape_is_static(&flat->shape) && ot__shape_is_static(&x->shape) &&
           flat->shape.dim[0] == x->shape.dim[0] && flat->shape.dim[1] == x->shape.dim[1];
}

static bool match_first_maximum(const ot__fusing *f, const ot_node *where, first_maximum *m)
{
    double zero;
    const ot_value *flat;
    ot_node *reader;

    m->equal = where->inputs[MASK]->producer;
    if (!ot__node_is(m->equal, "", "Equal") ||
        ot__fuse_only_reader(f, where->inputs[MASK]) != where)
        return false;
    m->arg_max = m->equal->inputs[1]->producer;
    if (!ot__node_is(m->arg_max, "", "ArgMax") || ot_attr_int(m->arg_max, "axis") != 2 ||
        ot_attr_int(m->arg_max, "keepdims") == 0 ||
        ot_attr_int(m->arg_max, "select_last_index") != 0 ||
        ot__fuse_only_reader(f, m->arg_max->outputs[0]) != m->equal ||
        !ot__match_number(where->inputs[ZERO], &zero) || zero != 0)
        return false;
    flat = m->arg_max->inputs[0];
    m->x = before_reshape(m->arg_max->inputs[0]);
    m->dy = before_reshape(where->inputs[ROWS]);
    m->y = maximum_of(f, m->x);
    reader = ot__fuse_only_reader(f, where->outputs[0]);
    m->dx = ot__node_is(reader, "", "Reshape") ? reader->outputs[0] : where->outputs[0];
    return m->y != NULL && is_flat(flat, m->x) &&
           counts_up(m->equal->inputs[0], flat->shape.dim[2]) &&
           ot__values_same_shape(m->dx, m->x) && ot__values_same_shape(m->dy, m->y);
}

static ot_status put_at_first_maximum(ot__fusing *f, ot_node *where)
{
    first_maximum m;
    ot_node *node;

    if (!ot__node_is(where, "", "Where") || !match_first_maximum(f, where, &m))
        return OT_OK;
    if (m.dx != where->outputs[0])
        ot__node_detach(m.dx->producer);
    ot__node_detach(where);
    ot__node_detach(m.equal);
    ot__node_detach(m.arg_max);
    OT_TRY(ot__fuse_add(f, "GlobalMaxPoolGrad", where->name, (ot_value *[]){m.dy, m.x, m.y}, 3,
                        &m.dx, 1, &node));
    return ot__op_infer(node);
}

ot_status ot__fuse_pool(ot_model *model)
{
    OT_TRY(ot__fuse_each(model, put_at_first_maximum));
    OT_TRY(ot__fuse_each(model, move_mask));
    return ot__fuse_each(model, shorten);
}
