// SPDX-License-Identifier: Apache-2.0
// What SGD with and without momentum share.
#include "ops/optimizer/optimizer.h"

enum { LR, WEIGHTS, GRADIENTS, MOMENTUMS };
enum { MOMENTUM, DECAY, NESTEROV, HAS_MOMENTUM }; // ot__pieces.numbers

ot_status ot__sgd_prepare(ot_prep *p)
{
    ot__pieces *pieces = ot__pieces_make(p, WEIGHTS, 1);

    return pieces ? OT_OK : p->status;
}

ot_status ot__sgd_momentum_prepare(ot_prep *p)
{
    ot__pieces *pieces = ot__pieces_make(p, WEIGHTS, 2);

    if (!pieces)
        return p->status;
    pieces->numbers[MOMENTUM] = (double)ot_attr_float(ot_prep_node(p), "momentum");
    pieces->numbers[DECAY] = (double)ot_attr_float(ot_prep_node(p), "weight_decay");
    pieces->numbers[NESTEROV] = (double)ot_attr_int(ot_prep_node(p), "nesterov");
    pieces->numbers[HAS_MOMENTUM] = 1;
    return OT_OK;
}

// `update` serves f32; NULL: the reference.
static ot_status sgd_update(const ot_run *r, void (*update)(float *, float *, const float *,
                                                            int64_t, const ot__sgd *))
{
    const ot__pieces *pieces = r->state;
    const bool has_momentum = pieces->numbers[HAS_MOMENTUM] != 0;
    const ot__sgd p = {.lr = ot__scalar_f64(r->in[r->in_first[LR]]),
                       .momentum = pieces->numbers[MOMENTUM],
                       .weight_decay = pieces->numbers[DECAY],
                       .nesterov = pieces->numbers[NESTEROV] != 0};
    const bool is_f32 = pieces->n_pieces > 0 && r->in[r->in_first[WEIGHTS]]->dtype == OT_F32;

    if (ot__update_is_off(r, has_momentum ? MOMENTUMS + 1 : MOMENTUMS)) {
        ot__optimizer_set_flag(r, false);
        return OT_OK;
    }
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];
        void *w = ot__piece_data(r, WEIGHTS, piece), *g = ot__piece_data(r, GRADIENTS, piece);
        void *buffer = has_momentum ? ot__piece_data(r, MOMENTUMS, piece) : NULL;

        if (update)
            update(w, buffer, g, piece->count, &p);
        else if (is_f32)
            ot__ref_sgd_f32(w, buffer, g, piece->count, &p);
        else
            ot__ref_sgd_f64(w, buffer, g, piece->count, &p);
    }
    ot__optimizer_set_flag(r, true);
    return OT_OK;
}

ot_status ot__sgd_run_ref(const ot_run *r)
{
    return sgd_update(r, NULL);
}

ot_status ot__sgd_run_simd(const ot_run *r)
{
    return sgd_update(r, ot__updates_best()->sgd);
}

bool ot__sgd_can_simd(const ot_prep *p)
{
    return ot__weights_are_f32(p, WEIGHTS);
}
