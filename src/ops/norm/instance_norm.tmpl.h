// SPDX-License-Identifier: Apache-2.0
// An image is a batch of one.
static ot_status FN(instance_norm_run)(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const T *x = r->in[X]->data, *scale = r->in[SCALE]->data, *bias = r->in[BIAS]->data;
    T *y = r->out[0]->data, *mean = r->scratch, *var = mean + p->channels;

    for (int64_t i = 0; i < p->n; i++) {
        const int64_t at = i * p->channels * p->inner;

        FN(ot__ref_channel_moments)(mean, var, x + at, 1, p->channels, p->inner);
        FN(ot__ref_batch_norm)
        (y + at, x + at, scale, bias, mean, var, p->epsilon, 1, p->channels, p->inner);
    }
    return OT_OK;
}
