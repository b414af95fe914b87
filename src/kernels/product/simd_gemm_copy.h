// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: copying blocks of the operands, in f32 whatever they are.
#ifndef OT_KERNELS_SIMD_GEMM_COPY_H
#define OT_KERNELS_SIMD_GEMM_COPY_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd_floats.h"

// ---- elements: `type` is f32, f16 or bf16, and a constant where these are called ----

OT_SIMD_INLINE const void *operand_at(const void *x, int64_t i, ot_dtype type)
{
    return type == OT_F32 ? (const void *)((const float *)x + i) : (const uint16_t *)x + i;
}

OT_SIMD_INLINE float element(const void *x, int64_t i, ot_dtype type)
{
    if (type == OT_F32)
        return ((const float *)x)[i];
    return type == OT_F16 ? ot__vwiden_f16(((const uint16_t *)x)[i])
                          : ot__vwiden_bf16(((const uint16_t *)x)[i]);
}

OT_SIMD_INLINE void copy_elements(float *to, const void *x, int64_t n, ot_dtype type)
{
    if (type == OT_F32) {
        memcpy(to, x, (size_t)n * sizeof(*to));
        return;
    }
    OT_SIMD_LOOP
    for (int64_t i = 0; i < n; i++)
        to[i] = element(x, i, type);
}

// ---- blocks ----

// A row of tiles of `a`, whose rows are contiguous: A_ROW floats apart.
OT_SIMD_INLINE void copy_a_rows_of(float *to, const void *a, int64_t a_row, int64_t rows,
                                   int64_t depth, ot_dtype type)
{
    for (int64_t i = 0; i < rows; i++)
        copy_elements(to + i * A_ROW, operand_at(a, i * a_row, type), depth, type);
}

static void copy_a_rows(float *to, const void *a, const ot__gemm *g, int64_t row, int64_t rows,
                        const block *x)
{
    const int64_t at = row * g->a_row + x->k;

    if (g->a_type == OT_BF16)
        copy_a_rows_of(to, operand_at(a, at, OT_BF16), g->a_row, rows, x->depth, OT_BF16);
    else if (g->a_type == OT_F16)
        copy_a_rows_of(to, operand_at(a, at, OT_F16), g->a_row, rows, x->depth, OT_F16);
    else
        copy_a_rows_of(to, operand_at(a, at, OT_F32), g->a_row, rows, x->depth, OT_F32);
}

// Tiles first .. end - 1 of rows: each has so many, the first n_taller of all one more.
typedef struct tile_rows {
    int64_t height, n_taller, first, end;
} tile_rows;

static int64_t tile_row(const tile_rows *x, int64_t tile)
{
    return tile * x->height + OT_MIN(tile, x->n_taller);
}

// Tiles from this one on that are as tall.
static int64_t count_as_tall(const tile_rows *x, int64_t tile)
{
    return (tile < x->n_taller ? OT_MIN(x->n_taller, x->end) : x->end) - tile;
}

// n tiles, so many floats of each, which begin at these rows of `a`; they are tile_floats apart.
OT_SIMD_INLINE void copy_a_tiles(float *to, int64_t tile_floats, const void *a, int64_t a_column,
                                 const int64_t *rows, int n, int64_t n_floats, int64_t depth,
                                 ot_dtype type)
{
    for (int64_t k = 0; k < depth; k++) {
        const void *column = operand_at(a, k * a_column, type);

        OT_SIMD_UNROLL
        for (int i = 0; i < n; i++)
            copy_elements(to + i * tile_floats + k * TILE_ROWS, operand_at(column, rows[i], type),
                          n_floats, type);
    }
}

enum { TILES_TOGETHER = 8 }; // whole lines of the cache are read then

// Tiles of `a`, whose columns are contiguous: each has TILE_ROWS floats of every column, of which
// `rows` are there from the first on. What is behind the last row of a tile is never used.
OT_SIMD_INLINE void copy_a_columns_of(float *to, const void *a, int64_t a_column, int64_t rows,
                                      const tile_rows *x, int64_t depth, ot_dtype type)
{
    const int64_t tile_floats = TILE_ROWS * depth;

    for (int64_t t = x->first, n; t < x->end; t += n, to += n * tile_floats) {
        int64_t at[TILES_TOGETHER];
        bool is_there = t + TILES_TOGETHER <= x->end;

        n = 1;
        if (is_there) {
            for (int64_t i = 0; i < TILES_TOGETHER; i++)
                at[i] = tile_row(x, t + i);
            is_there = at[TILES_TOGETHER - 1] + TILE_ROWS <= rows;
        }
        if (is_there) {
            n = TILES_TOGETHER;
            copy_a_tiles(to, tile_floats, a, a_column, at, TILES_TOGETHER, TILE_ROWS, depth, type);
        } else {
            at[0] = tile_row(x, t);
            if (at[0] + TILE_ROWS <= rows)
                copy_a_tiles(to, tile_floats, a, a_column, at, 1, TILE_ROWS, depth, type);
            else
                copy_a_tiles(to, tile_floats, a, a_column, at, 1, rows - at[0], depth, type);
        }
    }
}

// Of rows `row` .. end - 1.
static void copy_a_columns(float *to, const void *a, const ot__gemm *g, int64_t row, int64_t end,
                           const tile_rows *tiles, const block *x)
{
    const int64_t at = row + x->k * g->a_column, rows = end - row;

    if (g->a_type == OT_BF16)
        copy_a_columns_of(to, operand_at(a, at, OT_BF16), g->a_column, rows, tiles, x->depth,
                          OT_BF16);
    else if (g->a_type == OT_F16)
        copy_a_columns_of(to, operand_at(a, at, OT_F16), g->a_column, rows, tiles, x->depth,
                          OT_F16);
    else
        copy_a_columns_of(to, operand_at(a, at, OT_F32), g->a_column, rows, tiles, x->depth,
                          OT_F32);
}

// Panel of `columns` columns whose rows of k lie one after the other.
OT_SIMD_INLINE void copy_b_across(float *to, int64_t width, const void *b, int64_t b_row,
                                  int64_t columns, int64_t depth, ot_dtype type)
{
    for (int64_t p = 0; p < depth; p++) {
        float *row = to + p * width;
        const void *from = operand_at(b, p * b_row, type);

        if (columns == width) {
            copy_elements(row, from, width, type);
        } else {
            for (int64_t j = 0; j < width; j++)
                row[j] = j < columns ? element(from, j, type) : 0;
        }
    }
}

// The same where each column's k lie one after the other.
OT_SIMD_INLINE void copy_b_along(float *to, int64_t width, const void *b, int64_t b_column,
                                 int64_t columns, int64_t depth, ot_dtype type)
{
    enum { COLUMNS = 16, STRIP = 64 }; // that are widened first

    for (int64_t p = 0; p < depth && columns < width; p++)
        memset(to + p * width + columns, 0, (size_t)(width - columns) * sizeof *to);
    if (type == OT_F32) {
        ot__transpose_floats(&OT_ISA_NAME(ot__moves), to, width, b, b_column, depth, columns);
        return;
    }
    for (int64_t j = 0; j < columns; j += COLUMNS)
        for (int64_t at = 0; at < depth; at += STRIP) {
            const int64_t n = OT_MIN(depth - at, (int64_t)STRIP),
                          n_columns = OT_MIN(columns - j, (int64_t)COLUMNS);
            float strip[COLUMNS * STRIP];

            for (int64_t l = 0; l < n_columns; l++)
                copy_elements(strip + l * STRIP, operand_at(b, (j + l) * b_column + at, type), n,
                              type);
            ot__transpose_floats(&OT_ISA_NAME(ot__moves), to + at * width + j, width, strip, STRIP,
                                 n, n_columns);
        }
}

OT_SIMD_INLINE void copy_b_of(const void *b, const ot__gemm *g, const block *x, int64_t p,
                              ot_dtype type)
{
    const int64_t j = panel_column(x, p), width = panel_width(x, p);
    const int64_t columns = OT_MIN(x->columns - j, width);
    const void *from = operand_at(b, j * g->b_column, type);

    if (g->b_column == 1)
        copy_b_across(panel_copy(x, p), width, from, g->b_row, columns, x->depth, type);
    else
        copy_b_along(panel_copy(x, p), width, from, g->b_column, columns, x->depth, type);
}

// Panel p, unless it is read, or copied, where it lies.
static void copy_b_panel(const void *b, const ot__gemm *g, int64_t column, const block *x,
                         int64_t p)
{
    const int64_t at = x->k * g->b_row + column * g->b_column;

    if (x->origin != NULL && panel_width(x, p) <= x->columns)
        return;
    if (g->b_type == OT_BF16)
        copy_b_of(operand_at(b, at, OT_BF16), g, x, p, OT_BF16);
    else if (g->b_type == OT_F16)
        copy_b_of(operand_at(b, at, OT_F16), g, x, p, OT_F16);
    else
        copy_b_of(operand_at(b, at, OT_F32), g, x, p, OT_F32);
}

static void copy_b(const void *b, const ot__gemm *g, int64_t column, const block *x)
{
    for (int64_t p = 0; p < x->n_panels; p++)
        copy_b_panel(b, g, column, x, p);
}

#endif
