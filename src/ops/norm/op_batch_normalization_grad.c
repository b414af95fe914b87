// SPDX-License-Identifier: Apache-2.0
// Gradients of a batch normalisation by batch statistics, which are given.
#include "ops/norm/batch_norm.h"

enum {
    DY = OT__BN_GRAD_DY,
    X = OT__BN_GRAD_X,
    SCALE = OT__BN_GRAD_SCALE,
    INV_STD = OT__BN_GRAD_INV_STD,
};

void ot__batch_norm_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, DY), *x = ot_infer_shape(c, X);

    if (x->ndim < 2 || dy->ndim != x->ndim) {
        ot_infer_fail(c, "X and dY have %d and %d axes, expected the same, at least 2", x->ndim,
                      dy->ndim);
        return;
    }
    for (int i = 0; i < x->ndim; i++)
        if (ot_dim_is_number(x->dim[i]) && ot_dim_is_number(dy->dim[i]) &&
            x->dim[i] != dy->dim[i]) {
            ot_infer_fail(c, "X and dY differ along axis %d: %" PRId64 " and %" PRId64, i,
                          x->dim[i], dy->dim[i]);
            return;
        }
    for (int i = SCALE; i <= INV_STD; i++) {
        const ot_shape *v = ot_infer_shape(c, i);

        if (v->ndim != 1 || (ot_dim_is_number(v->dim[0]) && ot_dim_is_number(x->dim[1]) &&
                             v->dim[0] != x->dim[1])) {
            ot_infer_fail(c, "input %d must have one element a channel", i);
            return;
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, X), x);
    for (int i = 1; i < 3; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, X), ot_infer_shape(c, SCALE));
}

static void *output_of(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

ot_status ot__batch_norm_grad_run_ref(const ot_run *r, const void *dy)
{
    void *dx = output_of(r, 0), *dscale = output_of(r, 1), *db = output_of(r, 2);
    const void *x = r->in[X]->data, *scale = r->in[SCALE]->data,
               *mean = r->in[OT__BN_GRAD_MEAN]->data, *inv = r->in[INV_STD]->data;
    int64_t n, channels, inner;

    ot__channel_extents(&r->in[X]->shape, &n, &channels, &inner);
    if (r->in[X]->dtype == OT_F32)
        ot__ref_batch_norm_grad_f32(dx, dscale, db, dy, x, scale, mean, inv, n, channels, inner);
    else
        ot__ref_batch_norm_grad_f64(dx, dscale, db, dy, x, scale, mean, inv, n, channels, inner);
    return OT_OK;
}

static ot_status batch_norm_grad_run(const ot_run *r)
{
    return ot__batch_norm_grad_run_ref(r, r->in[DY]->data);
}

static const ot_port batch_norm_grad_in[] = {{"dY", "T", 0},
                                             {"X", "T", 0},
                                             {"scale", "T", OT_PORT_F32},
                                             {"saved_mean", "T", OT_PORT_F32},
                                             {"saved_inv_std", "T", OT_PORT_F32},
                                             {0}};
static const ot_port batch_norm_grad_out[] = {{"dX", "T", OT_PORT_OPTIONAL},
                                              {"dScale", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                              {"dB", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                              {0}};
static const ot_attr_spec batch_norm_grad_attrs[] = {
    {.name = "epsilon", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1e-5f}, {0}};
static const ot_kernel batch_norm_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__batch_norm_grad_can_simd,
     .forms = ot__batch_norm_grad_forms,
     .prepare = ot__batch_norm_grad_prepare_simd,
     .run = ot__batch_norm_grad_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .run = batch_norm_grad_run},
    {0},
};
const ot_op_def ot__op_batch_normalization_grad[] = {
    {.domain = "com.microsoft",
     .name = "BatchNormalizationGrad",
     .since = 1,
     .inputs = batch_norm_grad_in,
     .outputs = batch_norm_grad_out,
     .attrs = batch_norm_grad_attrs,
     .types = "T: f32 f64",
     .infer = ot__batch_norm_grad_infer,
     .kernels = batch_norm_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE},
    {0},
};
