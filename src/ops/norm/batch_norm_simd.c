// SPDX-License-Identifier: Apache-2.0
// Batch normalisation in f32 by vector code, in whatever form X has.
#include "ops/norm/batch_norm.h"

// ---- forward ----

bool ot__batch_norm_can_simd(const ot_prep *p)
{
    return ot_prep_in(p, OT__BN_X)->dtype == OT_F32 && ot_prep_in(p, OT__BN_X)->count > 0;
}

void ot__batch_norm_forms(ot_prep *p)
{
    const ot_form *form = ot_prep_offered_in(p, OT__BN_X);

    ot_prep_want_in(p, OT__BN_X, form);
    ot_prep_want_in(p, OT__BN_Z, form);
    ot_prep_want_out(p, OT__BN_Y, form);
}

static ot_status wrong_form(ot_prep *p)
{
    return ot_prep_fail(p, OT_ERR_INTERNAL, "the layout of X is not one of images");
}

ot_status ot__batch_norm_prepare_simd(ot_prep *p, ot__batch_norm *norm)
{
    enum { VECTORS = 4 }; // mean, variance, factor, offset
    const ot_arg *x = ot_prep_in(p, OT__BN_X);

    if (!ot__channels_of(&x->shape, x->form, &norm->layout))
        return wrong_form(p);
    ot_prep_scratch(p, ot__norm_scratch_bytes(&norm->layout) +
                           VECTORS * (size_t)norm->channels * sizeof(float));
    return OT_OK;
}

ot_status ot__batch_norm_run_simd(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const ot__norms *norms = ot__norms_best();
    const float *x = r->in[OT__BN_X]->data, *scale = r->in[OT__BN_SCALE]->data;
    const ot_arg *z = r->n_in > OT__BN_Z ? r->in[OT__BN_Z] : NULL;
    float *batch_mean = (void *)((uint8_t *)r->scratch + ot__norm_scratch_bytes(&p->layout));
    float *batch_var = batch_mean + p->channels, *factor = batch_var + p->channels;
    const float *mean = p->is_training ? batch_mean : r->in[OT__BN_MEAN]->data;
    const float *var = p->is_training ? batch_var : r->in[OT__BN_VAR]->data;

    if (p->is_training)
        norms->moments(batch_mean, batch_var, x, &p->layout, r->scratch);
    ot__ref_inv_std_f32(factor, var, p->epsilon, p->channels); // as it is saved
    for (int64_t c = 0; c < p->channels; c++)
        factor[c] = ot__batch_norm_factor(scale[c], factor[c]);
    norms->apply(&(ot__norm_apply){.mean = mean,
                                   .factor = factor,
                                   .offset = r->in[OT__BN_BIAS]->data,
                                   .x = x,
                                   .z = z == NULL ? NULL : z->data,
                                   .y = r->out[OT__BN_Y]->data,
                                   .relu = p->relu},
                 &p->layout);
    ot__batch_norm_finish(r, mean, var);
    return OT_OK;
}

// ---- backward ----

typedef struct grad_state {
    ot__channels layout;
    int64_t channels;
} grad_state;

bool ot__batch_norm_grad_can_simd(const ot_prep *p)
{
    return ot_prep_in(p, OT__BN_GRAD_X)->dtype == OT_F32 && ot_prep_in(p, OT__BN_GRAD_X)->count > 0;
}

void ot__batch_norm_grad_forms(ot_prep *p)
{
    const ot_form *form = ot_prep_offered_in(p, OT__BN_GRAD_X);

    ot_prep_want_in(p, OT__BN_GRAD_DY, form);
    ot_prep_want_in(p, OT__BN_GRAD_X, form);
    ot_prep_want_in(p, OT__BN_GRAD_Y, form);
    ot_prep_want_out(p, OT__BN_GRAD_DX, form);
    ot_prep_want_out(p, OT__BN_GRAD_DZ, form);
}

ot_status ot__batch_norm_grad_prepare_simd(ot_prep *p)
{
    enum { SUMS = 2, VECTORS = 3 }; // of doubles; of floats: a, b, d
    const ot_arg *x = ot_prep_in(p, OT__BN_GRAD_X);
    grad_state *state = ot_prep_state(p, sizeof(*state));

    if (!state)
        return OT_ERR_NO_MEMORY;
    if (!ot__channels_of(&x->shape, x->form, &state->layout))
        return wrong_form(p);
    state->channels = x->shape.dim[1];
    ot_prep_scratch(p, ot__norm_scratch_bytes(&state->layout) +
                           (size_t)state->channels *
                               (SUMS * sizeof(double) + VECTORS * sizeof(float)));
    return OT_OK;
}

static float *output_of(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] ? r->out[i]->data : NULL;
}

// With xh = (x - mean) * inv and means over all of a channel:
// dx = scale * inv * (g - mean(g) - xh * mean(g * xh)), written as g * a + (x - mean) * b + d.
ot_status ot__batch_norm_grad_run_simd(const ot_run *r)
{
    const grad_state *p = r->state;
    const ot__norms *norms = ot__norms_best();
    const ot_arg *y = r->n_in > OT__BN_GRAD_Y ? r->in[OT__BN_GRAD_Y] : NULL;
    const ot_arg *bias = r->n_in > OT__BN_GRAD_BIAS ? r->in[OT__BN_GRAD_BIAS] : NULL;
    const float *scale = r->in[OT__BN_GRAD_SCALE]->data, *inv = r->in[OT__BN_GRAD_INV_STD]->data;
    const float *mean = r->in[OT__BN_GRAD_MEAN]->data, *x = r->in[OT__BN_GRAD_X]->data;
    const double count = (double)(r->in[OT__BN_GRAD_X]->count / p->channels);
    float *dx = output_of(r, OT__BN_GRAD_DX), *dz = output_of(r, OT__BN_GRAD_DZ);
    float *dscale = output_of(r, OT__BN_GRAD_DSCALE), *db = output_of(r, OT__BN_GRAD_DB);
    double *sum_g = (void *)((uint8_t *)r->scratch + ot__norm_scratch_bytes(&p->layout));
    double *sum_gx = sum_g + p->channels;
    float *a = (void *)(sum_gx + p->channels), *b = a + p->channels, *d = b + p->channels;
    const ot__norm_sums sums = {.mean = mean,
                                .factor = a,
                                .offset = bias == NULL ? NULL : bias->data,
                                .dy = r->in[OT__BN_GRAD_DY]->data,
                                .y = y == NULL ? NULL : y->data,
                                .x = x,
                                .g_out = dz,
                                .sum_g = sum_g,
                                .sum_gx = sum_gx};

    for (int64_t c = 0; c < p->channels; c++)
        a[c] = ot__batch_norm_factor(scale[c], inv[c]);
    norms->sums(&sums, &p->layout, r->scratch);
    for (int64_t c = 0; c < p->channels; c++) {
        const double s = (double)inv[c], factor = (double)scale[c] * s;

        b[c] = (float)(-factor * s * s * sum_gx[c] / count);
        d[c] = (float)(-factor * sum_g[c] / count);
        if (dscale)
            dscale[c] = (float)(sum_gx[c] * s);
        if (db)
            db[c] = (float)sum_g[c];
    }
    if (dx)
        norms->dx(&(ot__norm_dx){.mean = mean,
                                 .a = a,
                                 .b = b,
                                 .d = d,
                                 .offset = dz ? NULL : sums.offset,
                                 .dy = dz ? dz : sums.dy,
                                 .y = dz ? NULL : sums.y,
                                 .x = x,
                                 .dx = dx},
                  &p->layout);
    return OT_OK;
}
