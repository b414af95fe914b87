// SPDX-License-Identifier: Apache-2.0
// One element type of gradient_norm.c.

static ot_status FN(reduce_all_l2_run)(const ot_run *r)
{
    double sum = 0;

    for (int i = 0; i < r->n_in; i++)
        sum += FN(ot__ref_updates).sum_square(r->in[i]->data, r->in[i]->count);
    OT_TRY(ot__run_sum(r, &sum, 1));
    *(T *)r->out[0]->data = (T)sqrt(sum);
    return OT_OK;
}

// On this rank. One sum a piece, added up in order: the same bits for any number of threads.
static double FN(square_sum)(const ot_run *r, const FN(ot__updates) * table)
{
    const ot__pieces *pieces = r->state;
    double *sums = r->scratch;

#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        sums[i] =
            table->sum_square(ot__piece_data(r, 0, &pieces->piece[i]), pieces->piece[i].count);
    return add_squares(sums, pieces->n_pieces);
}

// Squares of f32 in f64 cannot overflow, those of f64 can.
static bool FN(are_finite)(const ot_run *r)
{
    const ot__pieces *pieces = r->state;

    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const T *x = ot__piece_data(r, 0, &pieces->piece[i]);

        for (int64_t k = 0; k < pieces->piece[i].count; k++)
            if (!isfinite(x[k]))
                return false;
    }
    return true;
}

// Over all ranks, and whether all have finite gradients.
static ot_status FN(all_squares)(const ot_run *r, const FN(ot__updates) * table, double *sum,
                                 bool *finite)
{
    const norm_state *state = ((const ot__pieces *)r->state)->own;
    double sums[2] = {0}; // squares; ranks that have what is not finite

    if (state->is_exact) {
        OT_TRY(exact_square_sum(r, sum));
        *finite = isfinite(*sum);
        return OT_OK;
    }
    sums[0] = FN(square_sum)(r, table);
    sums[1] = isfinite(sums[0]) || FN(are_finite)(r) ? 0 : 1;
    OT_TRY(ot__run_sum(r, sums, 2));
    *sum = sums[0];
    *finite = !(sums[1] > 0);
    return OT_OK;
}

static ot_status FN(clip_norm_run)(const ot_run *r)
{
    const ot__pieces *pieces = r->state;
    const norm_state *state = pieces->own;
    const double divisor = divisor_of(r);
    double sum, factor;
    bool finite;

    OT_TRY(FN(all_squares)(r, &FN(ot__ref_updates), &sum, &finite));
    factor = state->max_norm / (sqrt(sum) / divisor + norm_epsilon);
    if (factor >= 1) // not where it is no number
        factor = 1;
    factor /= divisor;
    if (fabs(factor - 1) <= 0)
        return OT_OK;
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        FN(ot__ref_scale)(ot__piece_data(r, 0, &pieces->piece[i]), pieces->piece[i].count, factor);
    return OT_OK;
}

static ot_status FN(gradient_norm)(const ot_run *r, const FN(ot__updates) * table)
{
    const double divisor = divisor_of(r);
    uint8_t *flag = ot__run_out(r, 1);
    bool finite;
    double sum;

    OT_TRY(FN(all_squares)(r, table, &sum, &finite));
    *(double *)r->out[0]->data = sqrt(sum) / divisor;
    if (flag != NULL)
        *flag = finite;
    return OT_OK;
}

static ot_status FN(gradient_norm_run)(const ot_run *r)
{
    return FN(gradient_norm)(r, &FN(ot__ref_updates));
}
