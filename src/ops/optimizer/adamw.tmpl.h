// SPDX-License-Identifier: Apache-2.0
// One element type of op_adamw_optimizer.c.

static ot_status FN(adamw_update)(const ot_run *r, void (*update)(T *, T *, T *, const T *, int64_t,
                                                                  const ot__adamw *))
{
    const ot__pieces *pieces = r->state;
    const double *number = pieces->numbers;
    const double step = ot__scalar_f64(r->in[r->in_first[STEP]]);
    const bool corrects = number[CORRECT] != 0;
    const ot__adamw p = {
        .lr = ot__scalar_f64(r->in[r->in_first[LR]]),
        .beta1 = number[BETA1],
        .beta2 = number[BETA2],
        .epsilon = number[EPSILON],
        .weight_decay = number[DECAY],
        .c1 = corrects ? 1 - pow(number[BETA1], step) : 1,
        .c2 = corrects ? 1 - pow(number[BETA2], step) : 1,
        .mode = (int)number[MODE],
    };

    if (ot__update_is_off(r, SIGNAL)) {
        ot__optimizer_set_flag(r, false);
        return OT_OK;
    }
    if (corrects && step < 1)
        return ot__error(OT_ERR_INVALID, "step is %g, the first update is number 1", step);
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];
        void *w = ot__piece_data(r, WEIGHTS, piece), *m = ot__piece_data(r, MOMENTS1, piece);
        void *v = ot__piece_data(r, MOMENTS2, piece), *g = ot__piece_data(r, GRADIENTS, piece);

        update(w, m, v, g, piece->count, &p);
    }
    ot__optimizer_set_flag(r, true);
    return OT_OK;
}

static ot_status FN(adamw_run_ref)(const ot_run *r)
{
    return FN(adamw_update)(r, FN(ot__ref_adamw));
}
