// SPDX-License-Identifier: Apache-2.0
// Gradients of layer normalisations. Inputs: dY, X, scale, the mean where something was centered,
// and the factor last; of the invertible form Y for X and the bias for the mean.
#include "op/expand.h"
#include "ops/norm/layer_norm.h"

enum { DY, X, SCALE, MEAN };
enum { DX, DSCALE, DB };

// `bias`: the input that is of the scale's shape, too, or -1.
static void infer_gradients(ot_infer *c, int bias)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *x = ot_infer_shape(c, X), *scale = ot_infer_shape(c, SCALE);
    ot_shape stats;

    if (!ot__layer_norm_check(c, X, SCALE, bias, &stats))
        return;
    if (!ot__shape_may_equal(ot_infer_shape(c, DY), x))
        ot_infer_fail(c, "dY and X must have the same shape");
    for (int i = SCALE + 1; i < node->n_inputs; i++)
        if (i != bias && !ot__shape_may_equal(ot_infer_shape(c, i), &stats))
            ot_infer_fail(c, "input %d must have X's shape with size 1 where it is normalised", i);
    for (int i = 0; i < node->n_outputs; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, X), i == DX ? x : scale);
}

static void layer_norm_grad_infer(ot_infer *c)
{
    infer_gradients(c, -1);
}

static void invertible_infer(ot_infer *c)
{
    infer_gradients(c, SCALE + 1);
}

static ot_status layer_norm_grad_prepare(ot_prep *p)
{
    ot__layer_norm *norm = ot__layer_norm_state(p, X);

    OT_TRY(ot__made(norm));
    norm->is_centered = ot_prep_input_count(p) - 1 > MEAN;
    return OT_OK;
}

static const void *given_mean(const ot_run *r)
{
    return ((const ot__layer_norm *)r->state)->is_centered ? r->in[MEAN]->data : NULL;
}

static const void *given_inv_std(const ot_run *r)
{
    return r->in[r->n_in - 1]->data;
}

static ot_status invertible_prepare(ot_prep *p)
{
    const ot__layer_norm *norm = ot__layer_norm_state(p, X);
    size_t elements;

    OT_TRY(ot__made(norm));
    // X, centered, and the zeros that are then its means
    if (ot__size_mul_overflows((size_t)norm->rows, (size_t)norm->columns + 1, &elements) ||
        elements > SIZE_MAX / sizeof(double))
        return ot_prep_fail(p, OT_ERR_INVALID, "the input is too large");
    ot_prep_scratch(p, elements * ot_dtype_size(ot_prep_in(p, X)->dtype));
    return OT_OK;
}

#define TEMPLATE "ops/norm/layer_norm_grad.tmpl.h"
#include "kernels/by_float.tmpl.h"

static void layer_norm_dx_piece(const void *context, float *const *at, int64_t first, int64_t n)
{
    ot__row_norm_grad rows = *(const ot__row_norm_grad *)context;

    rows.dx = at[0];
    rows.dy = at[1];
    rows.x = at[2];
    rows.mean = rows.mean == NULL ? NULL : rows.mean + first;
    rows.inv += first;
    ot__rows_best()->layer_norm_dx(&rows, 0, n);
}

static ot__float_rows layer_norm_grad_rows(const ot__layer_norm *p, const ot_arg *dx,
                                           const ot_arg *dy, const ot_arg *x)
{
    return (ot__float_rows){.port = {{dx->data, dx->dtype, p->columns, true},
                                     {dy->data, dy->dtype, p->columns, false},
                                     {x->data, x->dtype, p->columns, false}},
                            .rows = p->rows,
                            .grain = OT_PAR_MIN / p->columns + 1,
                            .run = layer_norm_dx_piece};
}

static bool layer_norm_grad_can_simd(const ot_prep *p)
{
    if (ot_prep_in(p, DY)->dtype != ot_prep_in(p, X)->dtype ||
        !ot__layer_norm_others_are_f32(p, X, DX))
        return ot_prep_declines(p, "types that do not meet in training");
    return ot__prep_has_elements(p);
}

static ot_status layer_norm_grad_prepare_simd(ot_prep *p)
{
    const ot_arg *dx = ot_prep_out(p, DX);
    ot__float_rows rows;

    OT_TRY(layer_norm_grad_prepare(p));
    if (dx == NULL)
        return OT_OK;
    rows = layer_norm_grad_rows(p->state, dx, ot_prep_in(p, DY), ot_prep_in(p, X));
    ot_prep_scratch(p, ot__float_rows_bytes(&rows, ot_prep_threads(p)));
    return OT_OK;
}

static ot_status layer_norm_grad_run_simd(const ot_run *r)
{
    const ot__layer_norm *p = r->state;
    const int64_t n_blocks = (p->columns + OT__SUM_BLOCK - 1) / OT__SUM_BLOCK;
    ot__row_norm_grad norm = {.dscale = ot__run_out(r, DSCALE),
                              .db = ot__run_out(r, DB),
                              .dy = r->in[DY]->data,
                              .x = r->in[X]->data,
                              .type = r->in[X]->dtype,
                              .scale = r->in[SCALE]->data,
                              .mean = given_mean(r),
                              .inv = given_inv_std(r),
                              .rows = p->rows,
                              .columns = p->columns};

    if (norm.dscale != NULL || norm.db != NULL)
        ot__parallel_for(n_blocks, OT_PAR_MIN / (p->rows * OT__SUM_BLOCK) + 1,
                         ot__rows_best()->layer_norm_sums, &norm);
    if (ot__run_out(r, DX) != NULL) {
        ot__float_rows rows = layer_norm_grad_rows(p, r->out[DX], r->in[DY], r->in[X]);

        rows.context = &norm;
        ot__float_rows_run(&rows, r->scratch, r->n_threads);
    }
    return OT_OK;
}

// ---- in ONNX's operators ----

// With xh = (X - mean) * inv and b = dY * scale:  dX = inv * (b - mean(b) - xh * mean(b * xh)) over
// the axes normalised, dscale = sum(dY * xh) and db = sum(dY) over the others. Where nothing is
// centered, mean and mean(b) are left out.
static void layer_norm_grad_expand(ot_grad *g)
{
    const int n_in = ot_grad_input_count(g);
    ot_value *dy = ot_grad_x(g, DY), *x = ot_grad_x(g, X), *inv = ot_grad_x(g, n_in - 1);
    const int ndim = ot_value_shape(x)->ndim;
    const int64_t given = ot_attr_int(ot_grad_node(g), "axis");
    const int axis = (int)(given < 0 ? given + ndim : given);
    const bool is_centered = n_in - 1 > MEAN;
    ot_value *b, *xh, *along, *out[3] = {NULL}, *count;
    int64_t axes[OT_MAX_NDIM];

    if (!ot_value_has_shape(x) || axis < 0 || axis > ndim)
        return;
    for (int k = 0; k < ndim; k++)
        axes[k] = k;
    xh = ot_emit2(g, "Mul", is_centered ? ot_emit2(g, "Sub", x, ot_grad_x(g, MEAN)) : x, inv);
    if (ot_expand_wants(g, DX)) {
        count = ot_emit_cast(g, ot_emit1(g, "Size", ot_grad_x(g, SCALE)), ot_value_dtype(x));
        b = ot_emit2(g, "Mul", dy, ot_grad_x(g, SCALE));
        along = ot_emit2(g, "Div",
                         ot__emit_sum(g, ot_emit2(g, "Mul", b, xh), axes + axis, ndim - axis, true),
                         count);
        along = ot_emit2(g, "Mul", xh, along);
        if (is_centered)
            along = ot_emit2(
                g, "Add", along,
                ot_emit2(g, "Div", ot__emit_sum(g, b, axes + axis, ndim - axis, true), count));
        out[DX] = ot_emit2(g, "Mul", inv, ot_emit2(g, "Sub", b, along));
    }
    if (ot_expand_wants(g, DSCALE))
        out[DSCALE] = ot_emit2(g, "Mul", dy, xh);
    if (ot_expand_wants(g, DB))
        out[DB] = dy;
    for (int i = DSCALE; i <= DB; i++)
        if (axis > 0)
            out[i] = ot__emit_sum(g, out[i], axes, axis, false);
    for (int i = DX; i <= DB; i++)
        ot_expand_set(g, i, out[i]);
}

// ---- records ----

static const ot_port layer_norm_grad_in[] = {{"dY", "T", 0},
                                             {"X", "T", 0},
                                             {"scale", "T", OT_PORT_F32},
                                             {"mean", "T", OT_PORT_F32},
                                             {"inv_std_var", "T", OT_PORT_F32},
                                             {0}};
static const ot_port simplified_grad_in[] = {{"dY", "T", 0},
                                             {"X", "T", 0},
                                             {"scale", "T", OT_PORT_F32},
                                             {"inv_std_var", "T", OT_PORT_F32},
                                             {0}};
static const ot_port invertible_grad_in[] = {{"Y_grad", "T", 0},
                                             {"Y", "T", 0},
                                             {"scale", "T", OT_PORT_F32},
                                             {"bias", "T", OT_PORT_F32},
                                             {"inv_std_var", "T", OT_PORT_F32},
                                             {0}};
static const ot_port layer_norm_grad_out[] = {{"X_grad", "T", OT_PORT_OPTIONAL},
                                              {"scale_grad", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                              {"bias_grad", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                              {0}};
static const ot_port simplified_grad_out[] = {
    {"X_grad", "T", OT_PORT_OPTIONAL}, {"scale_grad", "T", OT_PORT_OPTIONAL | OT_PORT_F32}, {0}};
static const ot_kernel layer_norm_grad_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(layer_norm_grad_can_simd, layer_norm_grad_prepare_simd,
                           layer_norm_grad_run_simd),
    OT__REF_KERNELS(layer_norm_grad_prepare, layer_norm_grad_run),
    {0},
};
static const ot_kernel invertible_kernels[] = {OT__REF_KERNELS(invertible_prepare, invertible_run),
                                               {0}};

#define LAYER_NORM_GRAD(name_, symbol, inputs_, outputs_, infer_, kernels_, expand_)               \
    const ot_op_def ot__op_##symbol[] = {{.domain = OT__MS,                                        \
                                          .name = name_,                                           \
                                          .since = 1,                                              \
                                          .inputs = inputs_,                                       \
                                          .outputs = outputs_,                                     \
                                          .attrs = ot__layer_norm_attrs,                           \
                                          .types = "T: f32 f64",                                   \
                                          .infer = infer_,                                         \
                                          .kernels = kernels_,                                     \
                                          .flags = OT_OP_NO_GRAD,                                  \
                                          .expand = expand_},                                      \
                                         {0}};
LAYER_NORM_GRAD("LayerNormalizationGrad", layer_normalization_grad, layer_norm_grad_in,
                layer_norm_grad_out, layer_norm_grad_infer, layer_norm_grad_kernels,
                layer_norm_grad_expand)
LAYER_NORM_GRAD("SimplifiedLayerNormalizationGrad", simplified_layer_normalization_grad,
                simplified_grad_in, simplified_grad_out, layer_norm_grad_infer,
                layer_norm_grad_kernels, layer_norm_grad_expand)
// From the output: (Y - bias) / scale is what the normalised X was.
LAYER_NORM_GRAD("InvertibleLayerNormalizationGrad", invertible_layer_normalization_grad,
                invertible_grad_in, layer_norm_grad_out, invertible_infer, invertible_kernels, NULL)
