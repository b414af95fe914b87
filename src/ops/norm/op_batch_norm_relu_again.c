// SPDX-License-Identifier: Apache-2.0
// Y of BatchNormRelu without Z once more, from the statistics that it saved: what is cheap to make
// again need not be kept until the backward pass.
#include "ops/norm/batch_norm.h"

enum { X, SCALE, BIAS, MEAN, INV_STD }; // inputs

static void infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X);
    int64_t channels;

    if (x->ndim < 2) {
        ot_infer_fail(c, "X has %d axes, expected at least 2", x->ndim);
        return;
    }
    channels = x->dim[1];
    for (int i = SCALE; i <= INV_STD; i++) {
        const ot_shape *s = ot_infer_shape(c, i);

        if (s->ndim != 1 ||
            (ot_dim_is_number(s->dim[0]) && ot_dim_is_number(channels) && s->dim[0] != channels)) {
            ot_infer_fail(c, "input %d must have one number a channel of X", i);
            return;
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, X), x);
}

// ---- reference ----

static double get(const ot_arg *x, int64_t i)
{
    return x->dtype == OT_F32 ? (double)((const float *)x->data)[i] : ((const double *)x->data)[i];
}

void ot__batch_norm_relu_saved(const ot_arg *out, const ot_arg *const x_scale_bias[3],
                               const ot_arg *mean, const ot_arg *inv_std)
{
    const ot_arg *x = x_scale_bias[X];
    int64_t n, channels, inner;

    ot__channel_extents(&x->shape, &n, &channels, &inner);
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t c = i / inner % channels;
        const double y =
            (get(x, i) - get(mean, c)) * get(inv_std, c) * get(x_scale_bias[SCALE], c) +
            get(x_scale_bias[BIAS], c);

        if (x->dtype == OT_F32)
            ((float *)out->data)[i] = (float)(y < 0 ? 0 : y);
        else
            ((double *)out->data)[i] = y < 0 ? 0 : y;
    }
}

static ot_status run_ref(const ot_run *r)
{
    ot__batch_norm_relu_saved(r->out[0], r->in, r->in[MEAN], r->in[INV_STD]);
    return OT_OK;
}

// ---- f32 in any form ----

typedef struct again_state {
    ot__channels layout;
    int64_t channels;
} again_state;

static bool can_simd(const ot_prep *p)
{
    return ot_prep_in(p, X)->dtype == OT_F32 && ot_prep_in(p, X)->count > 0;
}

static void forms(ot_prep *p)
{
    const ot_form *form = ot_prep_offered_in(p, X);

    ot_prep_want_in(p, X, form);
    ot_prep_want_out(p, 0, form);
}

static ot_status prepare_simd(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, X);
    again_state *state = ot_prep_state(p, sizeof(*state));

    if (!state)
        return OT_ERR_NO_MEMORY;
    if (!ot__channels_of(&x->shape, x->form, &state->layout))
        return ot_prep_fail(p, OT_ERR_INTERNAL, "the layout of X is not one of images");
    state->channels = x->shape.dim[1];
    ot_prep_scratch(p, (size_t)state->channels * sizeof(float));
    return OT_OK;
}

static ot_status run_simd(const ot_run *r)
{
    const again_state *p = r->state;
    const float *scale = r->in[SCALE]->data, *inv_std = r->in[INV_STD]->data;
    float *factor = r->scratch;

    for (int64_t c = 0; c < p->channels; c++)
        factor[c] = ot__batch_norm_factor(scale[c], inv_std[c]);
    ot__norms_best()->apply(&(ot__norm_apply){.mean = r->in[MEAN]->data,
                                              .factor = factor,
                                              .offset = r->in[BIAS]->data,
                                              .x = r->in[X]->data,
                                              .y = r->out[0]->data,
                                              .relu = true},
                            &p->layout);
    return OT_OK;
}

static const ot_port batch_norm_relu_again_in[] = {{"X", "T", 0},
                                                   {"scale", "T", OT_PORT_F32},
                                                   {"B", "T", OT_PORT_F32},
                                                   {"saved_mean", "T", OT_PORT_F32},
                                                   {"saved_inv_std", "T", OT_PORT_F32},
                                                   {0}};
static const ot_port batch_norm_relu_again_out[] = {{"Y", "T", 0}, {0}};
static const ot_kernel batch_norm_relu_again_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = can_simd,
     .forms = forms,
     .prepare = prepare_simd,
     .run = run_simd},
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = run_ref},
    {0},
};
const ot_op_def ot__op_batch_norm_relu_again[] = {
    {.domain = "ai.onnxtrain",
     .name = "BatchNormReluAgain",
     .since = 1,
     .inputs = batch_norm_relu_again_in,
     .outputs = batch_norm_relu_again_out,
     .types = "T: f32 f64",
     .infer = infer,
     .kernels = batch_norm_relu_again_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
