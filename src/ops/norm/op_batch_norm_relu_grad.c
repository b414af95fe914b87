// SPDX-License-Identifier: Apache-2.0
// Gradients of BatchNormRelu: with g = dY where Y > 0, else 0, those of the normalisation for g,
// and dZ = g. Where there was no Z, B may be given instead of Y: then Y need not be kept.
#include "ops/norm/batch_norm.h"

#include <string.h>

static void infer(ot_infer *c)
{
    if (!ot_infer_has(c, OT__BN_GRAD_Y) && !ot_infer_has(c, OT__BN_GRAD_BIAS)) {
        ot_infer_fail(c, "neither Y nor B is given");
        return;
    }
    ot__batch_norm_grad_infer(c);
    ot_infer_set(c, OT__BN_GRAD_DZ, ot_infer_dtype(c, OT__BN_GRAD_X),
                 ot_infer_shape(c, OT__BN_GRAD_X));
}

static ot_status prepare_ref(ot_prep *p)
{
    const ot_arg *dy = ot_prep_in(p, OT__BN_GRAD_DY);

    ot_prep_scratch(p, (size_t)dy->count * ot_dtype_size(dy->dtype)); // g
    return OT_OK;
}

static double get(const ot_arg *x, int64_t i)
{
    return x->dtype == OT_F32 ? (double)((const float *)x->data)[i] : ((const double *)x->data)[i];
}

// Y at position i, or what has its sign.
static double output_at(const ot_run *r, int64_t i)
{
    const ot_arg *x = r->in[OT__BN_GRAD_X], *y = r->in[OT__BN_GRAD_Y];
    int64_t n, channels, inner, c;

    if (y != NULL)
        return get(y, i);
    ot__channel_extents(&x->shape, &n, &channels, &inner);
    c = i / inner % channels;
    return (get(x, i) - get(r->in[OT__BN_GRAD_MEAN], c)) * get(r->in[OT__BN_GRAD_INV_STD], c) *
               get(r->in[OT__BN_GRAD_SCALE], c) +
           get(r->in[OT__BN_GRAD_BIAS], c);
}

static ot_status run_ref(const ot_run *r)
{
    const ot_arg *dy = r->in[OT__BN_GRAD_DY];
    const size_t n_bytes = (size_t)dy->count * ot_dtype_size(dy->dtype);
    ot_arg *dz = r->n_out > OT__BN_GRAD_DZ ? r->out[OT__BN_GRAD_DZ] : NULL;

    for (int64_t i = 0; i < dy->count; i++)
        if (dy->dtype == OT_F32)
            ((float *)r->scratch)[i] = output_at(r, i) > 0 ? ((const float *)dy->data)[i] : 0;
        else
            ((double *)r->scratch)[i] = output_at(r, i) > 0 ? ((const double *)dy->data)[i] : 0;
    OT_TRY(ot__batch_norm_grad_run_ref(r, r->scratch));
    if (dz && n_bytes > 0)
        memcpy(dz->data, r->scratch, n_bytes);
    return OT_OK;
}

static const ot_port batch_norm_relu_grad_in[] = {{"dY", "T", 0},
                                                  {"X", "T", 0},
                                                  {"scale", "T", OT_PORT_F32},
                                                  {"saved_mean", "T", OT_PORT_F32},
                                                  {"saved_inv_std", "T", OT_PORT_F32},
                                                  {"Y", "T", OT_PORT_OPTIONAL},
                                                  {"B", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                                  {0}};
static const ot_port batch_norm_relu_grad_out[] = {{"dX", "T", OT_PORT_OPTIONAL},
                                                   {"dScale", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                                   {"dB", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                                   {"dZ", "T", OT_PORT_OPTIONAL},
                                                   {0}};
static const ot_kernel batch_norm_relu_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__batch_norm_grad_can_simd,
     .forms = ot__batch_norm_grad_forms,
     .prepare = ot__batch_norm_grad_prepare_simd,
     .run = ot__batch_norm_grad_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = prepare_ref,
     .run = run_ref},
    {0},
};
const ot_op_def ot__op_batch_norm_relu_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "BatchNormReluGrad",
     .since = 1,
     .inputs = batch_norm_relu_grad_in,
     .outputs = batch_norm_relu_grad_out,
     .types = "T: f32 f64",
     .infer = infer,
     .kernels = batch_norm_relu_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_INTERNAL},
    {0},
};
