// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: tiles that are whole in a buffer, from which y takes what belongs to it, at
// its borders and where it is transposed.
#ifndef OT_KERNELS_SIMD_GEMM_SPILL_H
#define OT_KERNELS_SIMD_GEMM_SPILL_H

#include "kernels/kernels.h"
#include "kernels/product/simd_gemm_copy.h"
#include "kernels/product/simd_gemm_tile.h"

// Rows of tiles, one below the other, that are transposed together: whole tiles, of which the rows
// of y become whole lines of the cache. STRIP_OF_ONE: of tiles of one vector.
enum {
    STRIP_ROWS = CACHE_LINE % TILE_ROWS == 0 ? CACHE_LINE : CACHE_LINE * TILE_ROWS / 2,
    STRIP_OF_ONE = OT_ISA_LEVEL == 2 ? CACHE_LINE * ROWS_OF_ONE / 4 : STRIP_ROWS,
    STRIP_FLOATS = STRIP_ROWS * TILE_COLUMNS > STRIP_OF_ONE *LANES ? STRIP_ROWS *TILE_COLUMNS
                                                                   : STRIP_OF_ONE *LANES,
};

// The most rows of a tile that reads `a` where it lies. Rows that are a multiple of OT__CLASH apart
// push each other out of the first cache. Zen 4, GFLOP/s of one vector with 12 and 8 rows: 4096 16
// 1024 a b 74 and 107, 2048 10 1024 45 and 65.
static int64_t tallest(int64_t a_row, int64_t vectors)
{
    if (vectors == TILE_VECTORS)
        return ROWS_OF_WIDEST;
    return vectors == 1 && a_row % OT__CLASH != 0 ? MOST_ROWS : TILE_ROWS;
}

static int64_t strip_rows(int64_t a_row, int64_t vectors)
{
    return tallest(a_row, vectors) > TILE_ROWS ? STRIP_OF_ONE : STRIP_ROWS;
}

static int64_t strip_tiles(int64_t a_row, int64_t rows, int64_t vectors)
{
    const int64_t most_rows = tallest(a_row, vectors);

    return (rows + most_rows - 1) / most_rows;
}

// The most rows of a tile of them.
static int64_t strip_tile(int64_t a_row, int64_t rows, int64_t vectors)
{
    const int64_t n = strip_tiles(a_row, rows, vectors);

    return (rows + n - 1) / n;
}

// A tile, or tiles one below the other, whole in a buffer, which is t->y.
static void multiply_strip(target *t, operands *o, int64_t rows, int64_t vectors, panel_kind kind)
{
    const int64_t n_tiles = strip_tiles(o->a_row, rows, vectors);
    const float *a = o->a, *b = o->b;
    const int64_t ahead = o->ahead;
    float *copy = o->copy, *y = t->y;

    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t row = rows * i / n_tiles;

        t->y = y + row * t->y_row;
        o->a = a + row * o->a_row;
        o->b = b;
        o->copy = copy;
        o->ahead = ahead;
        multiply(rows * (i + 1) / n_tiles - row, vectors, 1, t, o, kind);
    }
    o->a = a + o->a_next;
}

// Of a y that is transposed: its columns are contiguous.
static void spill_columns(const ot__gemm_plan *plan, float *y, const float *buffer, int64_t pitch,
                          int64_t rows, int64_t columns, bool accumulates)
{
    float turned[LANES * STRIP_OF_ONE];

    if (!accumulates) {
        ot__transpose_floats(&OT_ISA_NAME(ot__moves), y, plan->y_column, buffer, pitch, columns,
                             rows);
        return;
    }
    for (int64_t j = 0; j < columns; j += LANES) {
        const int64_t n = OT_MIN(columns - j, (int64_t)LANES);

        ot__transpose_floats(&OT_ISA_NAME(ot__moves), turned, STRIP_OF_ONE, buffer + j, pitch, n,
                             rows);
        for (int64_t i = 0; i < n; i++)
            store_line(y + (j + i) * plan->y_column, turned + i * STRIP_OF_ONE, rows, true);
    }
}

// `buffer`: at most STRIP_FLOATS, in rows that are `pitch` apart.
static void spill(const ot__gemm_plan *plan, float *y, const float *buffer, int64_t pitch,
                  int64_t rows, int64_t columns, bool accumulates)
{
    if (plan->y_column != 1) {
        spill_columns(plan, y, buffer, pitch, rows, columns, accumulates);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        store_line(y + i * plan->g.y_row, buffer + i * pitch, columns, accumulates);
}

#endif
