// SPDX-License-Identifier: Apache-2.0
// One element type of update.c.

static void FN(sum_norms)(const ot_run *r, const FN(ot__updates) * table,
                          const ot__update_row *rows, double *sums)
{
    const ot__pieces *pieces = r->state;
    const ot__update_state *s = pieces->own;
    const FN(ot__update_norms) norms =
        *(const FN(ot__update_norms) *)((const char *)table + s->rule->norms);

#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];

        norms(ot__piece_data(r, s->at.params, piece), slot_data(r, s, 0, piece),
              slot_data(r, s, 1, piece), ot__piece_data(r, s->at.gradients, piece), piece->count,
              &rows[piece->tensor], &sums[2 * i]);
    }
}

// The rate of each tensor by its norms.
static ot_status FN(take_norms)(const ot_run *r, const FN(ot__updates) * table,
                                ot__update_row *rows)
{
    const ot__pieces *pieces = r->state;
    const ot__update_state *s = pieces->own;
    void *room = rows + pieces->n_tensors;
    double *sums = room, *totals = sums + 2 * pieces->n_pieces;

    if (s->is_exact) {
        OT_TRY(ot__exact_norms(r, (const void *)table, rows, room, &totals)); // that of f32
    } else {
        FN(sum_norms)(r, table, rows, sums);
        OT_TRY(add_norms(r, pieces, sums, totals));
    }
    take_ratios(s, rows, pieces->n_tensors, totals);
    return OT_OK;
}

static ot_status FN(rule_update)(const ot_run *r, const FN(ot__updates) * table)
{
    const ot__pieces *pieces = r->state;
    const ot__update_state *s = pieces->own;
    const FN(ot__update) update = *(const FN(ot__update) *)((const char *)table + s->rule->loop);
    ot__update_row *rows = r->scratch;

    if (s->at.finite >= 0 && *(const uint8_t *)r->in[r->in_first[s->at.finite]]->data == 0) {
        ot__optimizer_set_flag(r, false);
        return OT_OK;
    }
    OT_TRY(ot__rule_fill(r, s, rows));
    if (s->rule->norms != 0)
        OT_TRY(FN(take_norms)(r, table, rows));
#pragma omp parallel for schedule(static) num_threads(r->n_threads) if (pieces->n_pieces > 1)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];

        update(ot__piece_data(r, s->at.params, piece), slot_data(r, s, 0, piece),
               slot_data(r, s, 1, piece), ot__piece_data(r, s->at.gradients, piece), piece->count,
               &rows[piece->tensor]);
    }
    ot__optimizer_set_flag(r, true);
    return OT_OK;
}

static ot_status FN(rule_run)(const ot_run *r)
{
    return FN(rule_update)(r, &FN(ot__ref_updates));
}
