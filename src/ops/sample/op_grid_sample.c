// SPDX-License-Identifier: Apache-2.0
// GridSample: Y = the images X at the positions of a grid; its gradients are an operator for X,
// which reads no X, and one for the grid.
#include <string.h>

#include "op/attr_word.h"
#include "ops/move/move.h"

enum { X, GRID };                 // inputs of GridSample
enum { DY, DY_SHAPE, DY_GRID };   // of the gradient of X
enum { SLOPE_X = 1, SLOPE_GRID }; // of that of the grid, behind dY

// ---- inference ----

static bool read_grid_words(ot_infer *c, const ot_node *node, ot__grid_sample *s)
{
    static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "bicubic", NULL};
    static const ot__grid_mode mode_of[] = {OT__GRID_LINEAR, OT__GRID_NEAREST, OT__GRID_CUBIC,
                                            OT__GRID_LINEAR, OT__GRID_CUBIC};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    const int mode = ot__attr_word(c, node, "mode", modes);
    const int padding = ot__attr_word(c, node, "padding_mode", paddings);

    if (mode < 0 || padding < 0)
        return false;
    s->mode = mode_of[mode];
    s->padding = (ot__grid_padding)padding;
    s->is_aligned = ot_attr_int(node, "align_corners") != 0;
    return true;
}

static bool check_grid(ot_infer *c, const ot_shape *x, const ot_shape *grid)
{
    const int n_axes = x->ndim - 2;

    if (n_axes < 1 || n_axes > OT__WINDOW_AXES)
        return ot__refuse(c,
                          "X has %d axes, expected 3 to 5: batch, channels, one to three of the "
                          "image",
                          x->ndim);
    if (grid->ndim != x->ndim)
        return ot__refuse(c, "grid has %d axes, expected %d as X has", grid->ndim, x->ndim);
    if (ot__dim_differs(grid->dim[0], x->dim[0]))
        return ot__refuse(c, "grid has batch size %" PRId64 ", X %" PRId64, grid->dim[0],
                          x->dim[0]);
    if (ot__dim_differs(grid->dim[n_axes + 1], n_axes))
        return ot__refuse(c, "grid has %" PRId64 " coordinates a position, expected %d",
                          grid->dim[n_axes + 1], n_axes);
    for (int a = 2; a < x->ndim; a++)
        if (ot_dim_is_number(x->dim[a]) && (x->dim[a] < 1 || x->dim[a] > OT__GRID_AXIS_MAX))
            return ot__refuse(c, "axis %d of X has size %" PRId64 ", expected 1 to %d", a,
                              x->dim[a], OT__GRID_AXIS_MAX);
    return true;
}

// The shape of the result; false with the failure.
static bool infer_sampled(ot_infer *c, const ot_shape *x, const ot_shape *grid, ot_shape *y)
{
    ot__grid_sample s;

    if (!read_grid_words(c, ot_infer_node(c), &s) || !check_grid(c, x, grid))
        return false;
    *y = *x;
    for (int a = 2; a < x->ndim; a++)
        y->dim[a] = grid->dim[a - 1];
    return true;
}

static void grid_sample_infer(ot_infer *c)
{
    ot_shape y;

    if (infer_sampled(c, ot_infer_shape(c, X), ot_infer_shape(c, GRID), &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
}

static bool infer_sampled_gradient(ot_infer *c, const ot_shape *x, const ot_shape *grid)
{
    ot_shape y;

    return infer_sampled(c, x, grid, &y) &&
           (ot__shape_may_equal(&y, ot_infer_shape(c, DY)) ||
            ot__refuse(c, "dY does not have the shape of the sampled images"));
}

static void grid_sample_grad_infer(ot_infer *c)
{
    ot_shape x;

    if (!ot__infer_shape_input(c, DY_SHAPE, &x))
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, DY));
    else if (infer_sampled_gradient(c, &x, ot_infer_shape(c, DY_GRID)))
        ot_infer_set(c, 0, ot_infer_dtype(c, DY), &x);
}

static void grid_sample_grid_grad_infer(ot_infer *c)
{
    const ot_shape *grid = ot_infer_shape(c, SLOPE_GRID);

    if (infer_sampled_gradient(c, ot_infer_shape(c, SLOPE_X), grid))
        ot_infer_set(c, 0, ot_infer_dtype(c, SLOPE_GRID), grid);
}

// ---- kernels ----

static ot__grid_sample make_grid_sample(const ot_prep *p, const ot_arg *x, const ot_arg *grid)
{
    ot__grid_sample s = {.batch = x->shape.dim[0],
                         .channels = x->shape.dim[1],
                         .n_axes = x->shape.ndim - 2,
                         .n_in = 1,
                         .n_out = 1,
                         .is_grid_wide = grid->dtype == OT_F64};

    (void)read_grid_words(NULL, ot_prep_node(p), &s);
    for (int a = 0; a < OT__WINDOW_AXES; a++) {
        const int of_x = 2 + a - (OT__WINDOW_AXES - s.n_axes);

        s.in[a] = of_x < 2 ? 1 : x->shape.dim[of_x];
        s.n_in *= s.in[a];
        s.n_out *= of_x < 2 ? 1 : grid->shape.dim[of_x - 1];
    }
    return s;
}

// The shape that an input states may have become known after inference.
static ot_status prep_grid_sample(ot_prep *p, const ot_arg *x, const ot_arg *y, const ot_arg *grid)
{
    ot__grid_sample *s = ot_prep_state(p, sizeof *s);
    const int n_axes = grid->shape.ndim - 2;
    bool fits = x->shape.ndim == grid->shape.ndim && n_axes >= 1 && n_axes <= OT__WINDOW_AXES &&
                grid->shape.dim[n_axes + 1] == n_axes && x->shape.dim[0] == grid->shape.dim[0];

    OT_TRY(ot__made(s));
    for (int a = 0; fits && a < n_axes; a++)
        fits = x->shape.dim[2 + a] >= 1 && x->shape.dim[2 + a] <= OT__GRID_AXIS_MAX;
    if (!fits)
        return ot_prep_fail(p, OT_ERR_INVALID, "the grid does not fit X");
    *s = make_grid_sample(p, x, grid);
    return y->count == s->batch * s->channels * s->n_out
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_INVALID, "the grid does not fit dY");
}

static ot_status grid_sample_prep(ot_prep *p)
{
    return prep_grid_sample(p, ot_prep_in(p, X), ot_prep_out(p, 0), ot_prep_in(p, GRID));
}

static ot_status grid_sample_grad_prep(ot_prep *p)
{
    return prep_grid_sample(p, ot_prep_out(p, 0), ot_prep_in(p, DY), ot_prep_in(p, DY_GRID));
}

static ot_status grid_sample_grid_grad_prep(ot_prep *p)
{
    return prep_grid_sample(p, ot_prep_in(p, SLOPE_X), ot_prep_in(p, DY),
                            ot_prep_in(p, SLOPE_GRID));
}

static bool can_sample(const ot_prep *p, const ot_arg *x)
{
    const int n_axes = x->shape.ndim - 2;
    ot__grid_sample s;

    if (ot__dims_count(x->shape.dim + 2, n_axes) > INT32_MAX)
        return ot_prep_declines(p, "a plane has more elements than 32 bits count");
    return !(n_axes == 3 && read_grid_words(NULL, ot_prep_node(p), &s) &&
             s.mode == OT__GRID_CUBIC) ||
           ot_prep_declines(p, "cubic along three axes");
}

static bool grid_sample_can_simd(const ot_prep *p)
{
    return can_sample(p, ot_prep_in(p, X));
}

static bool grid_sample_grad_can_simd(const ot_prep *p)
{
    return can_sample(p, ot_prep_out(p, 0));
}

static bool grid_sample_grid_grad_can_simd(const ot_prep *p)
{
    return can_sample(p, ot_prep_in(p, SLOPE_X));
}

static ot_status grid_sample_run_simd(const ot_run *r)
{
    ot__samplers_best()->sample(r->out[0]->data, r->in[X]->data, r->in[GRID]->data, r->state);
    return OT_OK;
}

static ot_status grid_sample_grad_run_simd(const ot_run *r)
{
    ot__samplers_best()->sample_dx(r->out[0]->data, r->in[DY]->data, r->in[DY_GRID]->data,
                                   r->state);
    return OT_OK;
}

static ot_status grid_sample_grid_grad_run_simd(const ot_run *r)
{
    ot__samplers_best()->sample_dgrid(r->out[0]->data, r->in[DY]->data, r->in[SLOPE_X]->data,
                                      r->in[SLOPE_GRID]->data, r->state);
    return OT_OK;
}

#define TEMPLATE "ops/sample/grid_sample.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- gradient ----

static ot_value *emit_sampled_gradient(ot_grad *g, const char *op, ot_value *second)
{
    ot_value *in[] = {ot_grad_dy(g, 0), second, ot_grad_x(g, GRID)};
    ot_node *node = ot_emit(g, op, NULL, in, 3, 1);

    ot_emit_forward_attrs(g, node);
    return ot_emit_output(g, node, 0);
}

static void grid_sample_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, X), *grid = ot_grad_x(g, GRID);
    const bool is_nearest = strcmp(ot_attr_string(ot_grad_node(g), "mode"), "nearest") == 0;

    if (ot_grad_wants(g, X))
        ot_grad_set_dx(
            g, X, emit_sampled_gradient(g, "ai.onnxtrain.GridSampleGrad", ot_emit_shape(g, x)));
    if (ot_grad_wants(g, GRID)) // which decides nothing but the element where that is the nearest
        ot_grad_set_dx(g, GRID,
                       is_nearest ? ot_emit_zeros_like(g, grid)
                                  : emit_sampled_gradient(g, "ai.onnxtrain.GridSampleGridGrad", x));
}

// Opset 20 has other names of modes, for any number of axes.
static void grid_sample_raise(ot_upgrade *u)
{
    const char *mode = ot_attr_string(ot_upgrade_node(u), "mode");

    if (strcmp(mode, "bilinear") == 0)
        ot_upgrade_set_string(u, "mode", "linear");
    else if (strcmp(mode, "bicubic") == 0)
        ot_upgrade_set_string(u, "mode", "cubic");
}

// ---- records ----

#define GRID_ATTRS(mode_)                                                                          \
    OT__FLAG_ATTR("align_corners", 0), OT__STRING_ATTR("mode", mode_),                             \
        OT__STRING_ATTR("padding_mode", "zeros"),                                                  \
    {                                                                                              \
        0                                                                                          \
    }
static const ot_attr_spec grid_attrs_16[] = {GRID_ATTRS("bilinear")};
static const ot_attr_spec grid_attrs[] = {GRID_ATTRS("linear")};
// Positions need f32: bf16 tells but 256 apart.
static const ot_port grid_sample_in[] = {{"X", "T1", 0}, {"grid", "T2", OT_PORT_F32}, {0}};
static const ot_port grid_sample_out[] = {{"Y", "T1", 0}, {0}};
static const ot_port grid_sample_grad_in[] = {
    {"dY", "T1", 0}, {"shape", "i64", 0}, {"grid", "T2", OT_PORT_F32}, {0}};
static const ot_port grid_sample_grad_out[] = {{"dX", "T1", 0}, {0}};
static const ot_port grid_sample_grid_grad_in[] = {
    {"dY", "T1", 0}, {"X", "T1", 0}, {"grid", "T2", OT_PORT_F32}, {0}};
static const ot_port grid_sample_grid_grad_out[] = {{"dGrid", "T2", OT_PORT_F32}, {0}};
#define GRID_KERNELS(symbol)                                                                       \
    static const ot_kernel symbol##_kernels[] = {                                                  \
        OT__SIMD_KERNEL("T1: f32; T2: f32", symbol##_can_simd, symbol##_prep, symbol##_run_simd),  \
        OT__REF_KERNEL("T1: f32", symbol##_prep, symbol##_run_f32),                                \
        OT__REF_KERNEL("T1: f64", symbol##_prep, symbol##_run_f64),                                \
        {0},                                                                                       \
    }
GRID_KERNELS(grid_sample);
GRID_KERNELS(grid_sample_grad);
GRID_KERNELS(grid_sample_grid_grad);
#define GRID_SAMPLE                                                                                \
    .name = "GridSample", .inputs = grid_sample_in, .outputs = grid_sample_out,                    \
    .types = "T1: f32 f64; T2: f32 f64", .infer = grid_sample_infer,                               \
    .kernels = grid_sample_kernels, .grad = grid_sample_grad,                                      \
    .by_image = {.in = 1 << X | 1 << GRID, .out = 1}
const ot_op_def ot__op_grid_sample[] = {
    {GRID_SAMPLE, .since = 16, .attrs = grid_attrs_16, .raise = grid_sample_raise},
    {GRID_SAMPLE, .since = 20, .attrs = grid_attrs},
    {0},
};
const ot_op_def ot__op_grid_sample_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "GridSampleGrad",
     .since = 1,
     .inputs = grid_sample_grad_in,
     .outputs = grid_sample_grad_out,
     .attrs = grid_attrs,
     .types = "T1: f32 f64; T2: f32 f64",
     .infer = grid_sample_grad_infer,
     .kernels = grid_sample_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .by_image = {.in = 1 << DY | 1 << DY_GRID, .out = 1}},
    {0},
};
const ot_op_def ot__op_grid_sample_grid_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "GridSampleGridGrad",
     .since = 1,
     .inputs = grid_sample_grid_grad_in,
     .outputs = grid_sample_grid_grad_out,
     .attrs = grid_attrs,
     .types = "T1: f32 f64; T2: f32 f64",
     .infer = grid_sample_grid_grad_infer,
     .kernels = grid_sample_grid_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .by_image = {.in = 1 << DY | 1 << SLOPE_X | 1 << SLOPE_GRID, .out = 1}},
    {0},
};
