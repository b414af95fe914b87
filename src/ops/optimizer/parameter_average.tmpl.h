// SPDX-License-Identifier: Apache-2.0
// One element type of op_parameter_average.c.

static ot_status FN(average_all)(const ot_run *r, FN(ot__update) average)
{
    const ot__pieces *pieces = r->state;
    const ot__update_row row = {.hyper = pieces->own};
    const int at = r->in_first[UPDATED]; // behind the sequences

    if (at < r->n_in && r->in[at] != NULL && *(const uint8_t *)r->in[at]->data == 0) {
        ot__optimizer_set_flag(r, false);
        return OT_OK;
    }
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const ot__piece_of *piece = &pieces->piece[i];

        average(ot__piece_data(r, AVERAGES, piece), NULL, NULL, ot__piece_data(r, PARAMS, piece),
                piece->count, &row);
    }
    ot__optimizer_set_flag(r, true);
    return OT_OK;
}

static ot_status FN(average_run)(const ot_run *r)
{
    return FN(average_all)(r, FN(ot__ref_updates).average);
}
