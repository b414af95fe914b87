// SPDX-License-Identifier: Apache-2.0
// What the gradients of LayerNormalization and SimplifiedLayerNormalization share: the latter has
// no mean and no bias.
#include "op/expand.h"
#include "ops/norm/layer_norm.h"

enum { DY, X, SCALE, MEAN }; // MEAN is left out where nothing is centered; inv_std_var is last
enum { DX, DSCALE, DB };

static bool fits(const ot_shape *a, const ot_shape *b)
{
    bool same = a->ndim == b->ndim;

    for (int i = 0; same && i < a->ndim; i++)
        same =
            a->dim[i] == b->dim[i] || !ot_dim_is_number(a->dim[i]) || !ot_dim_is_number(b->dim[i]);
    return same;
}

// `bias`: the input that is of the scale's shape, too, or -1.
static void infer(ot_infer *c, int bias)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *x = ot_infer_shape(c, X), *scale = ot_infer_shape(c, SCALE);
    ot_shape stats;

    if (!ot__layer_norm_check(c, X, SCALE, bias, &stats))
        return;
    if (!fits(ot_infer_shape(c, DY), x)) {
        ot_infer_fail(c, "dY and X must have the same shape");
        return;
    }
    for (int i = SCALE + 1; i < node->n_inputs; i++)
        if (i != bias && !fits(ot_infer_shape(c, i), &stats)) {
            ot_infer_fail(c, "input %d must have X's shape with size 1 where it is normalised", i);
            return;
        }
    for (int i = 0; i < node->n_outputs; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, X), i == DX ? x : scale);
}

void ot__layer_norm_grad_infer(ot_infer *c)
{
    infer(c, -1);
}

void ot__invertible_norm_grad_infer(ot_infer *c)
{
    infer(c, SCALE + 1);
}

static ot_status grad_prepare(ot_prep *p)
{
    return ot__layer_norm_prepare(p, X);
}

static void *output_of(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

// NULL: not centered.
static const void *mean_of(const ot_run *r)
{
    return r->n_in - 1 > MEAN ? r->in[MEAN]->data : NULL;
}

static const void *inv_of(const ot_run *r)
{
    return r->in[r->n_in - 1]->data;
}

static ot_status grad_run_ref(const ot_run *r)
{
    const ot__layer_norm *p = r->state;

    if (r->in[X]->dtype == OT_F32)
        ot__ref_layer_norm_grad_f32(output_of(r, DX), output_of(r, DSCALE), output_of(r, DB),
                                    r->in[DY]->data, r->in[X]->data, r->in[SCALE]->data, mean_of(r),
                                    inv_of(r), p->rows, p->columns);
    else
        ot__ref_layer_norm_grad_f64(output_of(r, DX), output_of(r, DSCALE), output_of(r, DB),
                                    r->in[DY]->data, r->in[X]->data, r->in[SCALE]->data, mean_of(r),
                                    inv_of(r), p->rows, p->columns);
    return OT_OK;
}

static bool grad_can_simd(const ot_prep *p)
{
    return ot_prep_in(p, X)->dtype == OT_F32 && ot_prep_in(p, X)->count > 0;
}

static ot_status grad_run_simd(const ot_run *r)
{
    const ot__layer_norm *p = r->state;
    const int64_t n_blocks = (p->columns + OT__ROW_BLOCK - 1) / OT__ROW_BLOCK;
    ot__row_norm_grad rows = {.dx = output_of(r, DX),
                              .dscale = output_of(r, DSCALE),
                              .db = output_of(r, DB),
                              .dy = r->in[DY]->data,
                              .x = r->in[X]->data,
                              .scale = r->in[SCALE]->data,
                              .mean = mean_of(r),
                              .inv = inv_of(r),
                              .rows = p->rows,
                              .columns = p->columns};

    if (rows.dscale || rows.db)
        ot__parallel_for(n_blocks, OT_PAR_MIN / (p->rows * OT__ROW_BLOCK) + 1,
                         ot__rows_best()->layer_norm_sums, &rows);
    if (rows.dx)
        ot__parallel_for(p->rows, OT_PAR_MIN / p->columns + 1, ot__rows_best()->layer_norm_dx,
                         &rows);
    return OT_OK;
}

const ot_kernel ot__layer_norm_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = grad_can_simd,
     .prepare = grad_prepare,
     .run = grad_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = grad_prepare,
     .run = grad_run_ref},
    {0},
};

// ---- in ONNX's operators ----

// With xh = (X - mean) * inv and b = dY * scale:  dX = inv * (b - mean(b) - xh * mean(b * xh)) over
// the axes normalised, dscale = sum(dY * xh) and db = sum(dY) over the others. Where nothing is
// centered, mean and mean(b) are left out.
void ot__layer_norm_grad_expand(ot_grad *g)
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
