// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: products of few rows or columns whose operands both have k contiguous, as
// the last layer of a classifier. Tiles would leave lanes of their vectors unused; here lanes go
// along k, a tile of y has as many sums as a vector has lanes, and what is in the lanes of each is
// added at the end.
#ifndef OT_KERNELS_SIMD_GEMM_DOTS_H
#define OT_KERNELS_SIMD_GEMM_DOTS_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd_floats.h"

#if OT_VECTOR_LANES >= 8
enum { DOT_COLUMNS = 4, DOT_ROWS = LANES / DOT_COLUMNS, DOT_SUMS = LANES };

// Of x and y, whose lanes are blocks of 2 * H, the sums of the two halves of each block.
#define DOT_HALF(p, H) ((p) % (LANES / 2) / (H)*2 * (H) + (p) % (H) + (p) / (LANES / 2) * LANES)
#define DOT_LANES_8(M, H, at)                                                                      \
    M(0, H) + (at), M(1, H) + (at), M(2, H) + (at), M(3, H) + (at), M(4, H) + (at),                \
        M(5, H) + (at), M(6, H) + (at), M(7, H) + (at)
#if OT_VECTOR_LANES == 16
#define DOT_LANES(M, H, at)                                                                        \
    DOT_LANES_8(M, H, at), M(8, H) + (at), M(9, H) + (at), M(10, H) + (at), M(11, H) + (at),       \
        M(12, H) + (at), M(13, H) + (at), M(14, H) + (at), M(15, H) + (at)
#else
#define DOT_LANES DOT_LANES_8
#endif
#define DOT_FOLD(x, y, H)                                                                          \
    (__builtin_shufflevector(x, y, DOT_LANES(DOT_HALF, H, 0)) +                                    \
     __builtin_shufflevector(x, y, DOT_LANES(DOT_HALF, H, H)))

// Lane i of the result is the sum of the lanes of s[i].
OT_SIMD_INLINE ot__vector sum_lanes(ot__vector *s)
{
#if OT_VECTOR_LANES == 16
    OT_SIMD_UNROLL
    for (int i = 0; i < 8; i++)
        s[i] = DOT_FOLD(s[2 * i], s[2 * i + 1], 8);
#endif
    OT_SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        s[i] = DOT_FOLD(s[2 * i], s[2 * i + 1], 4);
    OT_SIMD_UNROLL
    for (int i = 0; i < 2; i++)
        s[i] = DOT_FOLD(s[2 * i], s[2 * i + 1], 2);
    return DOT_FOLD(s[0], s[1], 1);
}

// Rows of a and of b's transpose, and how far on they are.
typedef struct dot_lines {
    const float *a, *b;
    int64_t a_row, b_row, k;
} dot_lines;

typedef int32_t dot_mask __attribute__((vector_size(4 * LANES)));

// Of a vector at the end of a line that begins before what is left of it.
OT_SIMD_INLINE ot__vector load_end(const float *x, dot_mask kept)
{
    return (ot__vector)((dot_mask)ot__vector_load(x) & kept);
}

// `rows`, `columns` and has_ended are constants where these are called. Lanes at p of the lines, or
// those at their ends.
OT_SIMD_INLINE void add_lanes(ot__vector *sum, const dot_lines *l, int64_t p, int rows, int columns,
                              bool has_ended, dot_mask kept)
{
    ot__vector column[DOT_COLUMNS];

    OT_SIMD_UNROLL
    for (int j = 0; j < columns; j++) {
        const float *b = l->b + j * l->b_row + p;

        column[j] = has_ended ? load_end(b, kept) : ot__vector_load(b);
    }
    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
        const float *a = l->a + i * l->a_row + p;
        const ot__vector row = has_ended ? load_end(a, kept) : ot__vector_load(a);

        OT_SIMD_UNROLL
        for (int j = 0; j < columns; j++)
            sum[i * DOT_COLUMNS + j] += row * column[j];
    }
}

// The sums of rows x columns lines.
OT_SIMD_INLINE ot__vector dot_tile(const dot_lines *l, int rows, int columns)
{
    const int64_t whole = l->k / LANES * LANES, end = l->k - LANES;
    ot__vector sum[DOT_SUMS];
    dot_mask kept = {0};

    OT_SIMD_UNROLL
    for (int i = 0; i < DOT_SUMS; i++)
        sum[i] = (ot__vector){0};
    for (int64_t p = 0; p < whole; p += LANES)
        add_lanes(sum, l, p, rows, columns, false, kept);
    if (whole < l->k) {
        OT_SIMD_UNROLL
        for (int i = 0; i < LANES; i++)
            kept[i] = end + i < whole ? 0 : -1;
        add_lanes(sum, l, end, rows, columns, true, kept);
    }
    return sum_lanes(sum);
}

OT_SIMD_INLINE ot__vector dot_columns(const dot_lines *l, int rows, int columns)
{
    switch (columns) {
    case 4:
        return dot_tile(l, rows, 4);
    case 3:
        return dot_tile(l, rows, 3);
    case 2:
        return dot_tile(l, rows, 2);
    default:
        return dot_tile(l, rows, 1);
    }
}

static ot__vector dot_rows(const dot_lines *l, int rows, int columns)
{
    switch (rows) {
#if OT_VECTOR_LANES == 16
    case 4:
        return dot_columns(l, 4, columns);
    case 3:
        return dot_columns(l, 3, columns);
#endif
    case 2:
        return dot_columns(l, 2, columns);
    default:
        return dot_columns(l, 1, columns);
    }
}

// A tile of y at (i, j) of the part.
static void run_dot_tile(const ot__gemm_plan *plan, const ot__gemm_data *data,
                         const ot__gemm_part *part, int64_t i, int64_t j)
{
    const ot__gemm *g = &plan->g;
    const int64_t row = part->row + i, column = part->column + j;
    const int64_t rows = OT_MIN(part->row_end - row, (int64_t)DOT_ROWS);
    const int64_t columns = OT_MIN(part->column_end - column, (int64_t)DOT_COLUMNS);
    const dot_lines l = {(const float *)data->a + row * g->a_row,
                         (const float *)data->b + column * g->b_column, g->a_row, g->b_column,
                         g->k};
    float sums[DOT_SUMS], *y = (float *)data->y + row * g->y_row + column;

    ot__vector_store(sums, (float)g->alpha * dot_rows(&l, (int)rows, (int)columns));
    for (int64_t r = 0; r < rows; r++, y += g->y_row) {
        const float *from = sums + r * DOT_COLUMNS;

        if (data->accumulates)
            for (int64_t c = 0; c < columns; c++)
                y[c] += from[c];
        else if (columns == DOT_COLUMNS)
            memcpy(y, from, DOT_COLUMNS * sizeof *y);
        else
            for (int64_t c = 0; c < columns; c++)
                y[c] = from[c];
    }
}

// The lines of which there are fewer are read again and again.
static void run_dots(const ot__gemm_plan *plan, const ot__gemm_data *data,
                     const ot__gemm_part *part)
{
    const int64_t rows = part->row_end - part->row, columns = part->column_end - part->column;

    if (columns < rows) {
        for (int64_t i = 0; i < rows; i += DOT_ROWS)
            for (int64_t j = 0; j < columns; j += DOT_COLUMNS)
                run_dot_tile(plan, data, part, i, j);
    } else {
        for (int64_t j = 0; j < columns; j += DOT_COLUMNS)
            for (int64_t i = 0; i < rows; i += DOT_ROWS)
                run_dot_tile(plan, data, part, i, j);
    }
}
#endif

#endif
