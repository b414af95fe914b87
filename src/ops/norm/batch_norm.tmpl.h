// SPDX-License-Identifier: Apache-2.0
// Moments over `count` elements a channel become those over the elements of all ranks, as many as
// *count then says. `numbers`: 2 a channel and one.
static ot_status FN(batch_norm_sync)(const ot_run *r, T *mean, T *var, double *numbers,
                                     double *count)
{
    const int64_t n = ((const ot__batch_norm *)r->state)->channels;
    double *squares = numbers + n;

    if (ot__batch_norm_is_ghost(r))
        *count = 0;
    for (int64_t c = 0; c < n; c++) {
        numbers[c] = *count * (double)mean[c];
        squares[c] = *count * ((double)var[c] + (double)mean[c] * (double)mean[c]);
    }
    squares[n] = *count;
    OT_TRY(ot__run_sum(r, numbers, (int)(2 * n + 1)));
    *count = squares[n];
    for (int64_t c = 0; c < n; c++) {
        const double centre = *count > 0 ? numbers[c] / *count : 0;

        mean[c] = (T)centre;
        var[c] = (T)(*count > 0 ? OT_MAX(squares[c] / *count - centre * centre, 0) : 0);
    }
    return OT_OK;
}

// Running statistics: updated in the inputs and shown in the outputs, or only in the outputs.
static void FN(batch_norm_update)(const ot_run *r, int input, int output, const T *batch,
                                  double count)
{
    const ot__batch_norm *p = r->state;
    T *in = r->in[input]->data, *out = ot__run_out(r, output);
    const bool has_batch = p->is_training && count > 0; // an empty one has no statistics

    if (has_batch && p->is_internal)
        FN(ot__ref_running)(in, batch, p->momentum, p->channels);
    for (int64_t c = 0; out && c < p->channels; c++)
        out[c] = in[c];
    if (has_batch && !p->is_internal && out)
        FN(ot__ref_running)(out, batch, p->momentum, p->channels);
}

// What follows after Y was made by `mean` and `var`, of `count` elements: running and saved
// statistics.
static void FN(batch_norm_finish)(const ot_run *r, const T *mean, const T *var, double count)
{
    const ot__batch_norm *p = r->state;
    T *saved_mean = ot__run_out(r, OT__BN_SAVED_MEAN);
    T *spread = ot__run_out(r, OT__BN_SAVED_SPREAD);

    for (int64_t c = 0; saved_mean && c < p->channels; c++)
        saved_mean[c] = mean[c];
    for (int64_t c = 0; spread && c < p->channels; c++)
        spread[c] = var[c];
    if (spread && p->is_internal)
        FN(ot__ref_inv_std)(spread, var, p->epsilon, p->channels);
    FN(batch_norm_update)(r, OT__BN_MEAN, OT__BN_RUNNING_MEAN, mean, count);
    FN(batch_norm_update)(r, OT__BN_VAR, OT__BN_RUNNING_VAR, var, count);
}

// Where the statistics are saved Y is made by those: BatchNormReluAgain gives the same bits.
static void FN(batch_norm_relu)(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const T *x = r->in[OT__BN_X]->data, *z = ot__run_in(r, OT__BN_Z);
    const T *mean = ot__run_out(r, OT__BN_SAVED_MEAN);
    const T *inv_std = ot__run_out(r, OT__BN_SAVED_SPREAD);
    T *y = r->out[OT__BN_Y]->data;

    if (mean && inv_std) {
        FN(ot__ref_batch_norm_relu)
        (y, x, z, r->in[OT__BN_SCALE]->data, r->in[OT__BN_BIAS]->data, mean, inv_std, p->n,
         p->channels, p->inner);
        return;
    }
    for (int64_t i = 0; i < r->out[OT__BN_Y]->count; i++) {
        const T v = z ? y[i] + z[i] : y[i];

        y[i] = v < 0 ? 0 : v;
    }
}

static ot_status FN(batch_norm_run)(const ot_run *r)
{
    const ot__batch_norm *p = r->state;
    const T *x = r->in[OT__BN_X]->data, *scale = r->in[OT__BN_SCALE]->data;
    T *batch_mean = r->scratch, *batch_var = batch_mean + p->channels;
    double count = (double)(p->n * p->inner);
    const T *mean = p->is_training ? batch_mean : r->in[OT__BN_MEAN]->data;
    const T *var = p->is_training ? batch_var : r->in[OT__BN_VAR]->data;

    if (p->is_training)
        FN(ot__ref_channel_moments)(batch_mean, batch_var, x, p->n, p->channels, p->inner);
    if (p->is_sync)
        OT_TRY(FN(batch_norm_sync)(r, batch_mean, batch_var, (void *)(batch_var + p->channels),
                                   &count));
    FN(ot__ref_batch_norm)
    (r->out[OT__BN_Y]->data, x, scale, r->in[OT__BN_BIAS]->data, mean, var, p->epsilon, p->n,
     p->channels, p->inner);
    FN(batch_norm_finish)(r, mean, var, count);
    if (p->relu)
        FN(batch_norm_relu)(r);
    return OT_OK;
}

static ot_status FN(batch_norm_again_run)(const ot_run *r)
{
    const ot__batch_norm *p = r->state;

    FN(ot__ref_batch_norm_relu)
    (r->out[OT__BN_Y]->data, r->in[OT__BN_X]->data, ot__run_in(r, OT__BN_Z),
     r->in[OT__BN_SCALE]->data, r->in[OT__BN_BIAS]->data, r->in[SAVED_MEAN]->data,
     r->in[SAVED_INV_STD]->data, p->n, p->channels, p->inner);
    return OT_OK;
}
