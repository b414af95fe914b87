// SPDX-License-Identifier: Apache-2.0
// Gradients of batch normalisations by batch statistics, which are given; of BatchNormRelu with
// g = dY where Y > 0, else 0, those for g, and dZ = g.
#include "ops/norm/batch_norm.h"

enum { DY, X, SCALE, MEAN, INV_STD, Y, BIAS };
enum { DX, DSCALE, DB, DZ };
enum { SUMS = 2 }; // a channel; behind them their count

static bool follows_relu(const ot_op_def *op)
{
    return ot__op_input_port(op, Y) != NULL;
}

static void batch_norm_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, DY), *x = ot_infer_shape(c, X);
    int64_t channels;

    if (follows_relu(ot_infer_node(c)->op) && !ot_infer_has(c, Y) && !ot_infer_has(c, BIAS))
        ot_infer_fail(c, "neither Y nor B is given");
    if (x->ndim < 2 || dy->ndim != x->ndim)
        ot_infer_fail(c, "X and dY have %d and %d axes, expected the same, at least 2", x->ndim,
                      dy->ndim);
    for (int i = 0; i < x->ndim; i++)
        if (ot__dim_differs(x->dim[i], dy->dim[i]))
            ot_infer_fail(c, "X and dY differ along axis %d: %" PRId64 " and %" PRId64, i,
                          x->dim[i], dy->dim[i]);
    if (!ot__infer_channels(c, X, 2, SCALE, INV_STD, &channels))
        return;
    for (int i = DX; i <= DZ; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, X), i == DX || i == DZ ? x : ot_infer_shape(c, SCALE));
}

// ---- reference ----

static ot_status batch_norm_grad_prepare_ref(ot_prep *p)
{
    const ot_arg *dy = ot_prep_in(p, DY);
    const ot__batch_norm *norm;

    OT_TRY(ot__batch_norm_state(p, X));
    norm = p->state;
    ot_prep_scratch(p, (SUMS * (size_t)norm->channels + 1) * sizeof(double) +
                           (follows_relu(ot_prep_node(p)->op)
                                ? (size_t)dy->count * ot_dtype_size(dy->dtype) // g
                                : 0));
    return OT_OK;
}

// Of gradients in all ranks, whose losses count by their weights, the two sums in `sums` are made
// over all, and again in terms of this rank's loss. *count: of the elements summed.
static ot_status batch_norm_grad_sync(const ot_run *r, double *sums, double *count)
{
    const ot__batch_norm *p = r->state;
    const int64_t n = SUMS * p->channels;
    const ot_exchange *exchange = r->step != NULL ? r->step->exchange : NULL;
    const double weight = exchange != NULL ? exchange->weight : 1;
    const bool is_ghost = ot__batch_norm_is_ghost(r);

    if (!p->is_sync)
        return OT_OK;
    for (int64_t i = 0; i < n; i++)
        sums[i] = is_ghost ? 0 : sums[i] * weight;
    sums[n] = is_ghost ? 0 : *count;
    OT_TRY(ot__run_sum(r, sums, (int)(n + 1)));
    *count = sums[n];
    for (int64_t i = 0; i < n; i++)
        sums[i] = is_ghost ? 0 : sums[i] / weight; // no statistics are made of its X
    return OT_OK;
}

#define TEMPLATE "ops/norm/batch_norm_grad.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- by vector code, in whatever layout X has ----

static void batch_norm_grad_layouts(ot_prep *p)
{
    const ot_layout *layout = ot_prep_offered_in(p, X);

    ot_prep_want_in(p, DY, layout);
    ot_prep_want_in(p, X, layout);
    ot_prep_want_in(p, Y, layout);
    ot_prep_want_out(p, DX, layout);
    ot_prep_want_out(p, DZ, layout);
}

static ot_status batch_norm_grad_prepare_simd(ot_prep *p)
{
    enum { VECTORS = 3 }; // a, b, d
    const ot__batch_norm *norm;

    OT_TRY(ot__batch_norm_state(p, X));
    norm = p->state;
    ot_prep_scratch(p, ot__norm_scratch_bytes(&norm->layout) +
                           (SUMS * (size_t)norm->channels + 1) * sizeof(double) +
                           VECTORS * (size_t)norm->channels * sizeof(float));
    return OT_OK;
}

// With xh = (x - mean) * inv and means over all of a channel:
// dx = scale * inv * (g - mean(g) - xh * mean(g * xh)), written as g * a + (x - mean) * b + d.
static ot_status batch_norm_grad_run_simd(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const ot__norms *norms = ot__norms_best();
    const float *scale = r->in[SCALE]->data, *inv = r->in[INV_STD]->data;
    const float *mean = r->in[MEAN]->data;
    const ot_dtype type = r->in[X]->dtype;
    const void *x = r->in[X]->data;
    double count = (double)(r->in[X]->count / p->channels);
    void *dx = ot__run_out(r, DX), *dz = ot__run_out(r, DZ);
    float *dscale = ot__run_out(r, DSCALE), *db = ot__run_out(r, DB);
    double *sum_g = (void *)((uint8_t *)r->scratch + ot__norm_scratch_bytes(&p->layout));
    double *sum_gx = sum_g + p->channels;
    float *a = (void *)(sum_gx + p->channels + 1), *b = a + p->channels, *d = b + p->channels;
    const ot__norm_sums sums = {.mean = mean,
                                .factor = a,
                                .offset = ot__run_in(r, BIAS),
                                .type = type,
                                .dy = r->in[DY]->data,
                                .y = ot__run_in(r, Y),
                                .x = x,
                                .g_out = dz,
                                .sum_g = sum_g,
                                .sum_gx = sum_gx};

    for (int64_t c = 0; c < p->channels; c++)
        a[c] = ot__batch_norm_factor(scale[c], inv[c]);
    norms->sums(&sums, &p->layout, r->scratch);
    for (int64_t c = 0; c < p->channels; c++) {
        if (dscale)
            dscale[c] = (float)(sum_gx[c] * (double)inv[c]);
        if (db)
            db[c] = (float)sum_g[c];
    }
    OT_TRY(batch_norm_grad_sync(r, sum_g, &count));
    for (int64_t c = 0; c < p->channels; c++) {
        const double s = (double)inv[c], factor = (double)scale[c] * s;

        b[c] = (float)(-factor * s * s * sum_gx[c] / count);
        d[c] = (float)(-factor * sum_g[c] / count);
    }
    if (dx)
        norms->dx(&(ot__norm_dx){.mean = mean,
                                 .a = a,
                                 .b = b,
                                 .d = d,
                                 .offset = dz ? NULL : sums.offset,
                                 .type = type,
                                 .dy = dz ? dz : sums.dy,
                                 .y = dz ? NULL : sums.y,
                                 .x = x,
                                 .dx = dx},
                  &p->layout);
    return OT_OK;
}

// ---- records ----

#define GRADIENT_IN                                                                                \
    {"dY", "T", 0}, {"X", "T", 0}, {"scale", "T", OT_PORT_F32}, {"saved_mean", "T", OT_PORT_F32},  \
    {                                                                                              \
        "saved_inv_std", "T", OT_PORT_F32                                                          \
    }
#define GRADIENT_OUT                                                                               \
    {"dX", "T", OT_PORT_OPTIONAL}, {"dScale", "T", OT_PORT_OPTIONAL | OT_PORT_F32},                \
    {                                                                                              \
        "dB", "T", OT_PORT_OPTIONAL | OT_PORT_F32                                                  \
    }
static const ot_port batch_norm_grad_in[] = {GRADIENT_IN, {0}};
static const ot_port batch_norm_relu_grad_in[] = {
    GRADIENT_IN, {"Y", "T", OT_PORT_OPTIONAL}, {"B", "T", OT_PORT_OPTIONAL | OT_PORT_F32}, {0}};
static const ot_port batch_norm_grad_out[] = {GRADIENT_OUT, {0}};
static const ot_port batch_norm_relu_grad_out[] = {
    GRADIENT_OUT, {"dZ", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel batch_norm_grad_kernels[] = {
    OT__BATCH_NORM_KERNEL(batch_norm_grad_layouts, batch_norm_grad_prepare_simd,
                          batch_norm_grad_run_simd),
    OT__REF_KERNELS(batch_norm_grad_prepare_ref, batch_norm_grad_run),
    {0},
};
const ot_op_def ot__op_batch_normalization_grad[] = {
    {.domain = OT__MS,
     .name = "BatchNormalizationGrad",
     .since = 1,
     .inputs = batch_norm_grad_in,
     .outputs = batch_norm_grad_out,
     .attrs = ot__epsilon_attrs,
     .types = "T: f32 f64",
     .infer = batch_norm_grad_infer,
     .kernels = batch_norm_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE},
    {0},
};
// That of SyncBatchNormalization. dScale and dB are those of this rank's batch: they are summed as
// gradients of other parameters are.
const ot_op_def ot__op_sync_batch_normalization_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "SyncBatchNormalizationGrad",
     .since = 1,
     .inputs = batch_norm_grad_in,
     .outputs = batch_norm_grad_out,
     .attrs = ot__epsilon_attrs,
     .types = "T: f32 f64",
     .infer = batch_norm_grad_infer,
     .kernels = batch_norm_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_INTERNAL | OT_OP_ORDERED},
    {0},
};
// Where there was no Z, B may be given instead of Y: then Y need not be kept.
const ot_op_def ot__op_batch_norm_relu_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "BatchNormReluGrad",
     .since = 1,
     .inputs = batch_norm_relu_grad_in,
     .outputs = batch_norm_relu_grad_out,
     .types = "T: f32 f64",
     .infer = batch_norm_grad_infer,
     .kernels = batch_norm_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_INTERNAL},
    {0},
};
