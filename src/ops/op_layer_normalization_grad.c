// Gradients of LayerNormalization.
#include "ops/layer_norm.h"

enum { DY, X, SCALE, MEAN, INV_STD };

static bool fits(const ot_shape *a, const ot_shape *b)
{
    bool same = a->ndim == b->ndim;

    for (int i = 0; same && i < a->ndim; i++)
        same =
            a->dim[i] == b->dim[i] || !ot_dim_is_number(a->dim[i]) || !ot_dim_is_number(b->dim[i]);
    return same;
}

static void norm_grad_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *scale = ot_infer_shape(c, SCALE);
    ot_shape stats;

    if (!ot__layer_norm_check(c, X, SCALE, -1, &stats))
        return;
    if (!fits(ot_infer_shape(c, DY), x)) {
        ot_infer_fail(c, "dY and X must have the same shape");
        return;
    }
    for (int i = SCALE + 1; i <= INV_STD; i++)
        if (!fits(ot_infer_shape(c, i), &stats)) {
            ot_infer_fail(c, "input %d must have X's shape with extent 1 where it is normalised",
                          i);
            return;
        }
    ot_infer_set(c, 0, ot_infer_dtype(c, X), x);
    for (int i = 1; i < 3; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, X), scale);
}

static ot_status norm_grad_prepare(ot_prep *p)
{
    return ot__layer_norm_prepare(p, X);
}

static void *output_of(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

static ot_status norm_grad_run(const ot_run *r)
{
    const ot__layer_norm *p = r->state;

    if (r->in[X]->dtype == OT_F32)
        ot__ref_layer_norm_grad_f32(output_of(r, 0), output_of(r, 1), output_of(r, 2),
                                    r->in[DY]->data, r->in[X]->data, r->in[SCALE]->data,
                                    r->in[MEAN]->data, r->in[INV_STD]->data, p->rows, p->columns);
    else
        ot__ref_layer_norm_grad_f64(output_of(r, 0), output_of(r, 1), output_of(r, 2),
                                    r->in[DY]->data, r->in[X]->data, r->in[SCALE]->data,
                                    r->in[MEAN]->data, r->in[INV_STD]->data, p->rows, p->columns);
    return OT_OK;
}

static bool norm_grad_can_simd(const ot_prep *p)
{
    return ot_prep_in(p, X)->dtype == OT_F32 && ot_prep_in(p, X)->count > 0;
}

static ot_status norm_grad_run_simd(const ot_run *r)
{
    const ot__layer_norm *p = r->state;
    const int64_t n_blocks = (p->columns + OT__ROW_BLOCK - 1) / OT__ROW_BLOCK;
    ot__row_norm_grad rows = {.dx = output_of(r, 0),
                              .dscale = output_of(r, 1),
                              .db = output_of(r, 2),
                              .dy = r->in[DY]->data,
                              .x = r->in[X]->data,
                              .scale = r->in[SCALE]->data,
                              .mean = r->in[MEAN]->data,
                              .inv = r->in[INV_STD]->data,
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

static const ot_port norm_grad_in[] = {{"dY", "T", 0},   {"X", "T", 0},           {"scale", "T", 0},
                                       {"mean", "T", 0}, {"inv_std_var", "T", 0}, {0}};
static const ot_port norm_grad_out[] = {{"X_grad", "T", OT_PORT_OPTIONAL},
                                        {"scale_grad", "T", OT_PORT_OPTIONAL},
                                        {"bias_grad", "T", OT_PORT_OPTIONAL},
                                        {0}};
static const ot_kernel norm_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = norm_grad_can_simd,
     .prepare = norm_grad_prepare,
     .run = norm_grad_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = norm_grad_prepare,
     .run = norm_grad_run},
    {0},
};
const ot_op_def ot__op_layer_normalization_grad[] = {
    {.domain = "com.microsoft",
     .name = "LayerNormalizationGrad",
     .since = 1,
     .inputs = norm_grad_in,
     .outputs = norm_grad_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64",
     .infer = norm_grad_infer,
     .kernels = norm_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
