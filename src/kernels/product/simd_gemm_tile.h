// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: the tile of y whose sums stay in registers.
#ifndef OT_KERNELS_SIMD_GEMM_TILE_H
#define OT_KERNELS_SIMD_GEMM_TILE_H

#include "kernels/simd.h"

// Where a tile's results go: y[row * y_row + vector] or, at the borders and when y is transposed,
// into `buffer` of MOST_ROWS rows.
typedef struct target {
    float *y;
    int64_t y_row;
    float alpha;
    bool accumulates;
} target;

// The operands of a tile: `a` has a_row floats between rows and a_k between columns, `b` b_k
// between rows and b_panel to the next panel. Where they are copied, the rows of b are left in
// `copy`, one after the other.
typedef struct operands {
    const float *a, *b;
    float *copy;
    int64_t a_row, a_k, b_k, b_panel, depth;
} operands;

// Rows of `a` whose addresses are sums of one pointer and a multiple of a_row; those of the others
// of a second pointer: registers cannot hold more multiples.
enum { NEAR_ROWS = OT_ISA_LEVEL == 2 ? MOST_ROWS / 2 : MOST_ROWS };

// (rows, depth) * (depth, vectors). All arguments but the structs are constants where it is called.
OT_SIMD_INLINE void tile(const target *t, const operands *o, int rows, int vectors, bool copies)
{
    const int64_t a_row = o->a_row, a_k = o->a_k, b_k = o->b_k;
    const target to = *t; // what is stored through it could change t
    const int64_t tiles_ahead = o->depth >= DEPTH_TO_FETCH ? 1 : TILES_AHEAD;
    const int64_t ahead = tiles_ahead * vectors * LANES;
    const float *a = o->a, *far = a + NEAR_ROWS * a_row, *b = o->b;
    float *copy = o->copy;
    ot__vector sum[MOST_ROWS][TILE_VECTORS];

    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = (ot__vector){0};
    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int j = 0; j < vectors * LANES; j += CACHE_LINE)
        __builtin_prefetch(to.y + i * to.y_row + ahead + j, 1);
    for (int64_t k = o->depth; k > 0; k--) {
        ot__vector column[TILE_VECTORS];

        OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++) {
            column[v] = ot__vector_load(b + v * LANES);
            if (copies)
                ot__vector_store(copy + v * LANES, column[v]);
            if (copies || FETCHES_PANELS)
                __builtin_prefetch(b + ROWS_AHEAD * b_k + v * LANES);
        }
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] += (i < NEAR_ROWS ? a[i * a_row] : far[(i - NEAR_ROWS) * a_row]) * column[v];
        a += a_k;
        far += a_k;
        b += b_k;
        copy += vectors * LANES;
    }
    float *y = to.y;

    if (to.alpha != 1) {
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] *= to.alpha;
    }
    if (to.accumulates) {
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++, y += to.y_row)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            ot__vector_store(y + v * LANES, sum[i][v] + ot__vector_load(y + v * LANES));
    } else {
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++, y += to.y_row)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            ot__vector_store(y + v * LANES, sum[i][v]);
    }
}

// Of n panels of as many vectors.
OT_SIMD_INLINE void tiles(const target *t, const operands *o, int64_t n, int rows, int vectors,
                          bool copies)
{
    target to = *t;
    operands from = *o;

    for (; n > 0; n--) {
        tile(&to, &from, rows, vectors, copies);
        to.y += vectors * LANES;
        from.b += from.b_panel;
        from.copy += vectors * LANES * from.depth;
    }
}

// The tiles of `rows` rows and `vectors` vectors, which the compiler must know to keep the sums in
// registers.
#define TILE_CASE(rows, vectors)                                                                   \
    case rows:                                                                                     \
        tiles(t, o, n, rows, vectors, copies);                                                     \
        break;
#define TILE_CASES_4(v) TILE_CASE(1, v) TILE_CASE(2, v) TILE_CASE(3, v) TILE_CASE(4, v)
#define TILE_CASES_6(v) TILE_CASES_4(v) TILE_CASE(5, v) TILE_CASE(6, v)
#define TILE_CASES_8(v) TILE_CASES_6(v) TILE_CASE(7, v) TILE_CASE(8, v)
#define TILE_CASES_12(v)                                                                           \
    TILE_CASES_8(v) TILE_CASE(9, v) TILE_CASE(10, v) TILE_CASE(11, v) TILE_CASE(12, v)
#define TILE_CASES_TO(rows, v) TILE_CASES_TO_(rows, v)
#define TILE_CASES_TO_(rows, v)                                                                    \
    switch (n_rows) {                                                                              \
        TILE_CASES_##rows(v)                                                                       \
    }                                                                                              \
    break
OT_SIMD_INLINE void tile_across(int n_rows, int n_vectors, int64_t n, const target *t,
                                const operands *o, bool copies)
{
    switch (n_vectors) {
#if MAX_VECTORS > 3
    case 4:
        TILE_CASES_TO(MAX_ROWS, 4);
#endif
#if MAX_VECTORS > 2
    case 3:
        TILE_CASES_TO(MAX_ROWS, 3);
#endif
    case 2:
        TILE_CASES_TO(MAX_ROWS, 2);
    default:
        TILE_CASES_TO(ROWS_OF_ONE, 1);
    }
}

static void multiply(int rows, int vectors, int64_t n, const target *t, const operands *o)
{
    tile_across(rows, vectors, n, t, o, false);
}

static void multiply_copying(int rows, int vectors, int64_t n, const target *t, const operands *o)
{
    tile_across(rows, vectors, n, t, o, true);
}

#endif
