// SPDX-License-Identifier: Apache-2.0
// MaxUnpool: elements put where the indices of a MaxPool say, zeros elsewhere. Indices count
// through the result, also where output_shape gives its sizes, as in ONNX Runtime and PyTorch.
#include "op/expand.h"
#include "ops/conv/window.h"
#include "ops/move/move.h"

enum { X, INDICES, OUTPUT_SHAPE }; // inputs

// ---- inference ----

// The shape that kernel, strides and pads make.
static bool infer_unpooled(ot_infer *c, const ot_shape *x, ot_shape *y)
{
    ot__geometry g;
    const char *wrong = ot__geometry_read(&g, ot_infer_node(c), x, NULL);

    if (wrong != NULL)
        return ot__refuse(c, "%s", wrong);
    *y = *x;
    for (int a = 0; a < g.n_axes; a++) {
        const int64_t n = x->dim[2 + a];
        const int64_t extra = g.kernel[a] - g.stride[a] - g.pad[a] - g.pad_end[a];
        int64_t *to = &y->dim[2 + a];

        *to = ot_infer_add(c, ot_infer_mul(c, n, g.stride[a]), extra);
        if (ot_dim_is_number(n) && (!ot_dim_is_number(*to) || *to < 0))
            return ot__refuse(c, "size %" PRId64 " of axis %d cannot be unpooled", n, 2 + a);
    }
    return true;
}

// The shape that output_shape gives, with X's batch and channels.
static bool infer_given_shape(ot_infer *c, const ot_shape *x, ot_shape *y)
{
    const ot_shape *list = ot_infer_shape(c, OUTPUT_SHAPE);

    if (list->ndim != 1 || ot__dim_differs(list->dim[0], x->ndim))
        return ot__refuse(c, "output_shape must be a list of %d sizes, as X has axes", x->ndim);
    if (!ot__infer_shape_input(c, OUTPUT_SHAPE, y)) {
        y->ndim = x->ndim;
        for (int k = 0; k < y->ndim; k++)
            y->dim[k] = ot_dim_unknown();
    }
    for (int k = 0; k < 2; k++) {
        if (ot__dim_differs(y->dim[k], x->dim[k]))
            return ot__refuse(c, "output_shape has %" PRId64 " for axis %d, X %" PRId64, y->dim[k],
                              k, x->dim[k]);
        y->dim[k] = x->dim[k];
    }
    return true;
}

static void max_unpool_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X);
    ot_shape y, given;

    if (!ot__infer_matches(c, X, INDICES) || !infer_unpooled(c, x, &y))
        return;
    if (!ot_infer_has(c, OUTPUT_SHAPE))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
    else if (infer_given_shape(c, x, &given))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), &given);
}

// ---- kernel ----

typedef struct unpool_state {
    int64_t planes, n_in, n_out;
    size_t size;
} unpool_state;

static ot_status max_unpool_prep(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, X), *y = ot_prep_out(p, 0);
    unpool_state *s = ot_prep_state(p, sizeof *s);

    OT_TRY(ot__made(s));
    s->planes = ot__dims_count(x->shape.dim, 2);
    s->n_in = ot__dims_count(x->shape.dim + 2, x->shape.ndim - 2);
    s->n_out = ot__dims_count(y->shape.dim + 2, y->shape.ndim - 2);
    return ot__prep_element_size(p, x, &s->size);
}

static ot_status max_unpool_run(const ot_run *r)
{
    const unpool_state *s = r->state;
    const ot_arg *y = r->out[0];
    const ot_arg *shape = OUTPUT_SHAPE < r->n_in ? r->in[OUTPUT_SHAPE] : NULL;
    int64_t wrong;

    for (int k = 0; shape != NULL && k < y->shape.ndim && k < (int)shape->count; k++)
        OT_TRY(ot__check_planned(ot__arg_int(shape, k), "elements along an axis of output_shape",
                                 y->shape.dim[k]));
    wrong = ot__ref_unpool(y->data, r->in[X]->data, r->in[INDICES]->data, s->planes, s->n_in,
                           s->n_out, s->size);
    return wrong < 0 ? OT_OK
                     : ot__error(OT_ERR_INVALID,
                                 "index %" PRId64 " at position %" PRId64
                                 " is outside a result of %" PRId64 " elements",
                                 ot__arg_int(r->in[INDICES], wrong), wrong, y->count);
}

// ---- gradient ----

// dX = dY's elements where those of X were put.
static void max_unpool_grad(ot_grad *g)
{
    const int64_t all = -1;
    ot_value *dy = ot__emit_reshape(g, ot_grad_dy(g, 0), &all, 1);

    ot_grad_set_dx(g, X, ot_emit2(g, "Gather", dy, ot_grad_x(g, INDICES)));
}

static const ot_port max_unpool_in[] = {
    {"X", "T", 0},
    {"I", "i64", OT_PORT_NO_GRAD},
    {"output_shape", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_attr_spec max_unpool_attrs[] = {
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel max_unpool_kernels[] = {
    OT__REF_KERNEL(NULL, max_unpool_prep, max_unpool_run), {0}};
const ot_op_def ot__op_max_unpool[] = {
    {.name = "MaxUnpool",
     .since = 9,
     .inputs = max_unpool_in,
     .outputs = ot__output_out,
     .attrs = max_unpool_attrs,
     .types = "T: f32 f64 f16 bf16",
     .infer = max_unpool_infer,
     .kernels = max_unpool_kernels,
     .grad = max_unpool_grad},
    {0},
};
