// SPDX-License-Identifier: Apache-2.0
// Y = the mean, the maximum or the norm of all spatial elements of each channel.
#include "op/expand.h"
#include "ops/pool/pool.h"

#include <math.h>

enum { DY, X, Y }; // inputs of GlobalMaxPoolGrad

static void global_pool_infer(ot_infer *c)
{
    ot_shape y = *ot_infer_shape(c, 0);

    if (y.ndim < 3)
        ot_infer_fail(c, "X has %d axes, expected at least 3", y.ndim);
    for (int i = 2; i < y.ndim; i++) {
        if (y.dim[i] == 0)
            ot_infer_fail(c, "X has no elements along axis %d", i);
        y.dim[i] = 1;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static void global_max_grad_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *y = ot_infer_shape(c, Y);

    if (!ot__infer_matches(c, DY, Y))
        return;
    if (x->ndim < 3 || x->ndim != y->ndim || ot__dim_differs(x->dim[0], y->dim[0]) ||
        ot__dim_differs(x->dim[1], y->dim[1]))
        ot_infer_fail(c, "Y does not have the planes of X");
    for (int i = 2; i < y->ndim; i++)
        if (ot__dim_differs(y->dim[i], 1))
            ot_infer_fail(c, "Y has size %" PRId64 " along axis %d, expected 1", y->dim[i], i);
    ot_infer_set(c, 0, ot_infer_dtype(c, DY), x);
}

#define TEMPLATE "ops/pool/global_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- f32: planes are rows ----

static ot_status global_prepare_simd(ot_prep *p)
{
    const ot_shape *x = &ot_prep_in(p, 0)->shape;
    const ot_shape planes = OT_SHAPE(x->dim[0] * x->dim[1], ot__plane_elements(x));
    ot__reduction *reduction = ot_prep_state(p, sizeof(*reduction));

    OT_TRY(ot__made(reduction));
    ot__reduction_init(reduction, &planes, (const bool[]){false, true});
    return OT_OK;
}

static ot_status global_average_run_simd(const ot_run *r)
{
    ot__reducers_best()->reduce_mean(r->out[0]->data, r->in[0]->data, r->state);
    return OT_OK;
}

static ot_status global_max_run_simd(const ot_run *r)
{
    ot__reducers_best()->reduce_max(r->out[0]->data, r->in[0]->data, r->state);
    return OT_OK;
}

static bool global_max_grad_can_simd(const ot_prep *p)
{
    return ot__plane_elements(&ot_prep_in(p, X)->shape) <= INT32_MAX ||
           ot_prep_declines(p, "a plane has more elements than 32 bits count");
}

static ot_status global_max_grad_run_simd(const ot_run *r)
{
    const ot_shape *x = &r->in[X]->shape;

    ot__row_pools_best()->plane_max_grad(r->out[0]->data, r->in[DY]->data, r->in[X]->data,
                                         r->in[Y]->data, x->dim[0] * x->dim[1],
                                         ot__plane_elements(x));
    return OT_OK;
}

// ---- narrow types ----

static ot_status global_max_prepare_narrow(ot_prep *p)
{
    ot__pool_scratch_narrow(p);
    return OT_OK;
}

static ot_status global_max_run_narrow(const ot_run *r)
{
    return ot__pool_run_narrow(r, global_max_run_f32);
}

// ---- gradients ----

// dX = dY / n for every element of a mean of n.
static void global_average_rule(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *share = ot_emit2(g, "Div", dy, ot__emit_plane_elements(g, x, dy));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", share, ot_emit_shape(g, x)));
}

// How many elements a plane has, as a list of one number.
static ot_value *emit_plane_size(ot_grad *g, ot_value *x)
{
    const int n = ot_value_shape(x)->ndim;
    ot_value *spatial;
    int64_t size;

    if (ot__spatial_is_static(x)) {
        size = ot__plane_elements(ot_value_shape(x));
        return ot_emit_constant_i64(g, &size, 1);
    }
    spatial = ot__emit_extents(g, x, 2, n);
    return ot_emit_output(g, ot_emit(g, "ReduceProd", "keepdims = 1", &spatial, 1, 1), 0);
}

// dY goes to the first of the largest elements of each plane, as in PyTorch; passes/fuse_pool.c
// makes one node of it.
static void global_max_rule(ot_grad *g)
{
    const int64_t one = 1;
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *parts[2], *flat, *first, *place, *is_first, *rows;

    if (!ot__grad_knows_axes(g, x))
        return;
    parts[0] = ot__emit_extents(g, x, 0, 2);
    parts[1] = emit_plane_size(g, x);
    flat = ot_emit2(g, "Reshape", x, ot__emit_concat(g, parts, 2, 0));
    first = ot_emit_output(g, ot_emit(g, "ArgMax", "axis = 2", &flat, 1, 1), 0);
    place = ot__emit_count_up(g, ot__emit_at(g, parts[1], 0));
    is_first = ot_emit2(g, "Equal", place, first);
    parts[1] = ot_emit_constant_i64(g, &one, 1);
    rows = ot_emit2(g, "Reshape", dy, ot__emit_concat(g, parts, 2, 0));
    rows = ot_emit3(g, "Where", is_first, rows, ot_emit_constant(g, 0.0, x));
    ot_grad_set_dx(g, 0, ot_emit_reshape_like(g, rows, x));
}

// ---- norms, composed of reductions ----

// (the sum of |X|^p)^(1 / p), whose gradient is 0 where it is, as that of ReduceL2.
static ot_value *emit_norm(ot_grad *g, ot_value *x, double p, const int64_t *axes, int n)
{
    ot_value *zero = ot_emit_constant(g, 0.0, x), *one = ot_emit_constant(g, 1.0, x);
    ot_value *sum = ot_emit1(g, "Abs", x), *is_zero, *root;

    sum = ot_emit2(g, "Pow", sum, ot_emit_constant(g, p, x));
    sum = ot__emit_sum(g, sum, axes, n, true);
    is_zero = ot_emit2(g, "Equal", sum, zero);
    root = ot_emit3(g, "Where", is_zero, one, sum);
    root = ot_emit2(g, "Pow", root, ot_emit_constant(g, 1 / p, x));
    return ot_emit3(g, "Where", is_zero, zero, root);
}

static void global_norm_compose(ot_grad *g)
{
    const int64_t p = ot_attr_int(ot_grad_node(g), "p");
    ot_value *x = ot_grad_x(g, 0);
    int64_t axes[OT_MAX_NDIM];
    const int n = ot_value_shape(x)->ndim - 2;

    if (!ot_value_has_shape(x))
        return;
    for (int k = 0; k < n; k++)
        axes[k] = k + 2;
    ot_expand_set(g, 0,
                  p == 1   ? ot__emit_reduce(g, "ReduceL1", x, axes, n)
                  : p == 2 ? ot__emit_reduce(g, "ReduceL2", x, axes, n)
                           : emit_norm(g, x, (double)p, axes, n));
}

static const ot_attr_spec global_norm_attrs[] = {{.name = "p",
                                                  .kind = OT_ATTRIBUTE_INT,
                                                  .flags = OT_ATTR_HAS_DEFAULT,
                                                  .i = 2,
                                                  .low = 1,
                                                  .high = INFINITY},
                                                 {0}};
const ot_op_def ot__op_global_lp_pool[] = {
    {.name = "GlobalLpPool",
     .since = 2,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = global_norm_attrs,
     .types = "T: f32 f64",
     .infer = global_pool_infer,
     .train = global_norm_compose},
    {0},
};

// ---- records of the others ----

static const ot_kernel global_average_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, global_prepare_simd, global_average_run_simd),
    OT__REF_KERNELS(NULL, global_average_run),
    {0},
};
static const ot_kernel global_max_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, global_prepare_simd, global_max_run_simd),
    OT__REF_KERNELS(NULL, global_max_run),
    OT__REF_KERNEL("T: f16 bf16", global_max_prepare_narrow, global_max_run_narrow),
    {0},
};
static const ot_port global_max_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {"Y", "T", 0}, {0}};
static const ot_kernel global_max_grad_kernels[] = {
    OT__SIMD_KERNEL("T: f32", global_max_grad_can_simd, NULL, global_max_grad_run_simd),
    OT__REF_KERNELS(NULL, global_max_grad_run),
    {0},
};
const ot_op_def ot__op_global_average_pool[] = {
    {.name = "GlobalAveragePool",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = global_pool_infer,
     .kernels = global_average_kernels,
     .grad = global_average_rule,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
const ot_op_def ot__op_global_max_pool[] = {
    {.name = "GlobalMaxPool",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64 f16 bf16",
     .infer = global_pool_infer,
     .kernels = global_max_kernels,
     .grad = global_max_rule,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
const ot_op_def ot__op_global_max_pool_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "GlobalMaxPoolGrad",
     .since = 1,
     .inputs = global_max_grad_in,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = global_max_grad_infer,
     .kernels = global_max_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL,
     .by_image = {.in = 7, .out = 1}},
    {0},
};
