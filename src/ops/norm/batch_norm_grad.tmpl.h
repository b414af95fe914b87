// SPDX-License-Identifier: Apache-2.0
// g by Y, or by what has Y's sign, made of X.
static void FN(batch_norm_mask)(const ot_run *r, T *g, const T *y, const T *bias)
{
    const ot__batch_norm *p = r->state;
    const T *dy = r->in[DY]->data, *x = r->in[X]->data, *scale = r->in[SCALE]->data;
    const T *mean = r->in[MEAN]->data, *inv = r->in[INV_STD]->data;

    for (int64_t i = 0; i < r->in[X]->count; i++) {
        const int64_t c = i / p->inner % p->channels;
        const double at = y ? (double)y[i]
                            : ((double)x[i] - (double)mean[c]) * (double)inv[c] * (double)scale[c] +
                                  (double)bias[c];

        g[i] = at > 0 ? dy[i] : 0;
    }
}

static ot_status FN(batch_norm_grad_run)(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const T *g = r->in[DY]->data, *y = ot__run_in(r, Y), *bias = ot__run_in(r, BIAS);
    T *dz = ot__run_out(r, DZ);

    if (y || bias) {
        FN(batch_norm_mask)(r, r->scratch, y, bias);
        g = r->scratch;
    }
    FN(ot__ref_batch_norm_grad)
    (ot__run_out(r, DX), ot__run_out(r, DSCALE), ot__run_out(r, DB), g, r->in[X]->data,
     r->in[SCALE]->data, r->in[MEAN]->data, r->in[INV_STD]->data, p->n, p->channels, p->inner);
    for (int64_t i = 0; dz && i < r->in[X]->count; i++)
        dz[i] = g[i];
    return OT_OK;
}
