// SPDX-License-Identifier: Apache-2.0
// One element type of gradient_norm.c.

static ot_status FN(reduce_all_l2_run)(const ot_run *r)
{
    double sum = 0;

    for (int i = 0; i < r->n_in; i++)
        sum += FN(ot__ref_sum_square)(r->in[i]->data, r->in[i]->count);
    *(T *)r->out[0]->data = (T)sqrt(sum);
    return OT_OK;
}

// One sum a piece, added up in order: the same bits for any number of threads.
static ot_status FN(clip_norm_run)(const ot_run *r)
{
    const ot__pieces *pieces = r->state;
    double *sums = r->scratch, total = 0, factor;

#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        sums[i] =
            FN(ot__ref_sum_square)(ot__piece_data(r, 0, &pieces->piece[i]), pieces->piece[i].count);
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        total += sums[i];
    factor = pieces->numbers[MAX_NORM] / (sqrt(total) + norm_epsilon);
    if (factor >= 1)
        return OT_OK;
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        FN(ot__ref_scale)(ot__piece_data(r, 0, &pieces->piece[i]), pieces->piece[i].count, factor);
    return OT_OK;
}
