// SPDX-License-Identifier: Apache-2.0
// One element type of sgd.c.

static ot_status FN(sgd_update)(const ot_run *r,
                                void (*update)(T *, T *, const T *, int64_t, const ot__sgd *))
{
    const ot__pieces *pieces = r->state;
    const bool has_momentum = pieces->numbers[HAS_MOMENTUM] != 0;
    const ot__sgd p = {.lr = ot__scalar_f64(r->in[r->in_first[LR]]),
                       .momentum = pieces->numbers[MOMENTUM],
                       .weight_decay = pieces->numbers[DECAY],
                       .nesterov = pieces->numbers[NESTEROV] != 0};

    if (ot__update_is_off(r, has_momentum ? MOMENTUMS + 1 : MOMENTUMS)) {
        ot__optimizer_set_flag(r, false);
        return OT_OK;
    }
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];
        void *w = ot__piece_data(r, WEIGHTS, piece), *g = ot__piece_data(r, GRADIENTS, piece);
        void *buffer = has_momentum ? ot__piece_data(r, MOMENTUMS, piece) : NULL;

        update(w, buffer, g, piece->count, &p);
    }
    ot__optimizer_set_flag(r, true);
    return OT_OK;
}

static ot_status FN(sgd_run_ref)(const ot_run *r)
{
    return FN(sgd_update)(r, FN(ot__ref_sgd));
}
