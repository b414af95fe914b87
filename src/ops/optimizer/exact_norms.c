// SPDX-License-Identifier: Apache-2.0
// Norms whose bits do not depend on how tensors are cut over threads and ranks: their squares are
// added without rounding.
#include "ops/optimizer/optimizer.h"

#include <string.h>

ot_status ot__run_exact_sums(const ot_run *r, ot__exact_sum *sums, int n, double *numbers)
{
    // Digits are below 2^32, so that their sums over ranks are exact in f64.
    for (int i = 0; i < n; i++) {
        double *of_sum = numbers + (ptrdiff_t)i * OT_EXACT_NUMBERS;

        for (int k = 0; k < OT_EXACT_DIGITS; k++)
            of_sum[k] = (double)sums[i].digits[k];
        of_sum[OT_EXACT_DIGITS] = (double)sums[i].n_not_finite;
    }
    OT_TRY(ot__run_sum(r, numbers, n * OT_EXACT_NUMBERS));
    for (int i = 0; i < n; i++) {
        const double *of_sum = numbers + (ptrdiff_t)i * OT_EXACT_NUMBERS;
        ot__exact_sum all = {.n_not_finite = (uint64_t)of_sum[OT_EXACT_DIGITS]};

        for (int k = 0; k < OT_EXACT_DIGITS; k++)
            all.digits[k] = (uint64_t)of_sum[k];
        sums[i] = (ot__exact_sum){.n_not_finite = 0};
        ot__exact_sum_add(&sums[i], &all); // carries
    }
    return OT_OK;
}

// ---- two norms of every tensor ----

enum { CHUNK_OF_DIRECTION = 512 }; // elements, on the stack

typedef struct exact_room {
    ot__exact_sum *of_pieces, *of_tensors; // two each
    double *numbers;
} exact_room;

size_t ot__exact_norms_room(const ot__pieces *pieces)
{
    const size_t n_pieces = 2 * (size_t)pieces->n_pieces, n_sums = 2 * (size_t)pieces->n_tensors;

    return (n_pieces + n_sums) * sizeof(ot__exact_sum) + n_sums * OT_EXACT_NUMBERS * sizeof(double);
}

static exact_room split_room(const ot__pieces *pieces, void *room)
{
    ot__exact_sum *of_tensors = (ot__exact_sum *)room + 2 * pieces->n_pieces;

    return (exact_room){.of_pieces = room,
                        .of_tensors = of_tensors,
                        .numbers = (double *)(of_tensors + 2 * (ptrdiff_t)pieces->n_tensors)};
}

static void sum_exactly(const ot_run *r, ot__update_direction_f32 direct, const ot__piece_of *piece,
                        const ot__update_row *row, ot__exact_sum *sums)
{
    const ot__update_state *s = ((const ot__pieces *)r->state)->own;
    const float *w = ot__piece_data(r, s->at.params, piece);
    const float *m = ot__piece_data(r, s->at.slots[0], piece);
    const float *v = ot__piece_data(r, s->at.slots[1], piece);
    const float *g = ot__piece_data(r, s->at.gradients, piece);
    float d[CHUNK_OF_DIRECTION];

    memset(sums, 0, 2 * sizeof *sums);
    ot__exact_sum_squares(&sums[0], w, piece->count);
    for (int64_t i = 0; i < piece->count; i += CHUNK_OF_DIRECTION) {
        const int64_t n = OT_MIN(piece->count - i, (int64_t)CHUNK_OF_DIRECTION);

        direct(d, w + i, m + i, v + i, g + i, n, row);
        ot__exact_sum_squares(&sums[1], d, n);
    }
}

ot_status ot__exact_norms(const ot_run *r, const ot__updates *table, const ot__update_row *rows,
                          void *memory, double **totals)
{
    const ot__pieces *pieces = r->state;
    const exact_room room = split_room(pieces, memory);
    const int n_sums = 2 * pieces->n_tensors;

#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        sum_exactly(r, table->lamb_direction, &pieces->piece[i], &rows[pieces->piece[i].tensor],
                    &room.of_pieces[2 * i]);
    memset(room.of_tensors, 0, (size_t)n_sums * sizeof *room.of_tensors);
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        for (int k = 0; k < 2; k++)
            ot__exact_sum_add(&room.of_tensors[2 * pieces->piece[i].tensor + k],
                              &room.of_pieces[2 * i + k]);
    OT_TRY(ot__run_exact_sums(r, room.of_tensors, n_sums, room.numbers));
    for (int i = 0; i < n_sums; i++)
        room.numbers[i] = ot__exact_sum_value(&room.of_tensors[i]);
    *totals = room.numbers;
    return OT_OK;
}
