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
    const T *x = r->in[X]->data, *mean = r->in[MEAN]->data, *inv = r->in[INV_STD]->data;
    const T *g = r->in[DY]->data, *y = ot__run_in(r, Y), *bias = ot__run_in(r, BIAS);
    T *dx = ot__run_out(r, DX), *dz = ot__run_out(r, DZ);
    T *dscale = ot__run_out(r, DSCALE), *db = ot__run_out(r, DB);
    double *sum = r->scratch, *sum_xh = sum + p->channels;
    double count = (double)(p->n * p->inner);

    if (y || bias) {
        T *masked = (void *)(sum_xh + p->channels + 1);

        FN(batch_norm_mask)(r, masked, y, bias);
        g = masked;
    }
    FN(ot__ref_channel_sums)(sum, sum_xh, g, x, mean, inv, p->n, p->channels, p->inner);
    for (int64_t c = 0; dscale && c < p->channels; c++)
        dscale[c] = (T)sum_xh[c];
    for (int64_t c = 0; db && c < p->channels; c++)
        db[c] = (T)sum[c];
    OT_TRY(batch_norm_grad_sync(r, sum, &count));
    for (int64_t i = 0; dz && i < r->in[X]->count; i++)
        dz[i] = g[i];
    if (dx)
        FN(ot__ref_batch_norm_dx)
    (dx, g, x, r->in[SCALE]->data, mean, inv, sum, sum_xh, count, p->n, p->channels, p->inner);
    return OT_OK;
}
