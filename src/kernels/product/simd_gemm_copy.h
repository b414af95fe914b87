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

enum { A_VECTORS = (TILE_ROWS + LANES - 1) / LANES };

// Tiles t .. t + n - 1 of a part's rows: tile i begins at row first[i], first[n] is the end.
typedef struct tiles_of_a {
    int64_t n, first[A_GROUP + 1];
    int64_t stride; // of the copies
} tiles_of_a;

// Where columns are contiguous: several tiles at once, because what is read of a column is then
// whole lines of the cache. Of `safe` columns there are as many floats as vectors read.
static void copy_a_columns(float *to, const float *a, const ot__gemm *g, const tiles_of_a *tiles,
                           int64_t depth, int64_t safe)
{
    // Floats that follow those of a tile are stored too, and then overwritten.
    for (int64_t p = 0; p < safe; p++)
        for (int64_t t = 0; t < tiles->n; t++)
            for (int v = 0; v < A_VECTORS; v++)
                ot__vector_store(
                    to + t * tiles->stride + p * TILE_ROWS + v * LANES,
                    ot__vector_load(a + p * g->a_column + tiles->first[t] + v * LANES));
    for (int64_t p = safe; p < depth; p++)
        for (int64_t t = 0; t < tiles->n; t++)
            for (int64_t i = tiles->first[t]; i < tiles->first[t + 1]; i++)
                to[t * tiles->stride + p * TILE_ROWS + i - tiles->first[t]] =
                    a[p * g->a_column + i];
}

OT_SIMD_INLINE void copy_a_of(float *to, const void *a, const ot__gemm *g, const tiles_of_a *tiles,
                              int64_t depth, ot_dtype type)
{
    for (int64_t t = 0; t < tiles->n; t++, to += tiles->stride) {
        const int64_t rows = tiles->first[t + 1] - tiles->first[t];
        const void *at = operand_at(a, tiles->first[t] * g->a_row, type);

        if (g->a_column == 1) {
            for (int64_t i = 0; i < rows; i++)
                copy_elements(to + i * A_ROW, operand_at(at, i * g->a_row, type), depth, type);
        } else {
            for (int64_t p = 0; p < depth; p++)
                for (int64_t i = 0; i < rows; i++)
                    to[p * TILE_ROWS + i] = element(at, i * g->a_row + p * g->a_column, type);
        }
    }
}

// The rows of tiles t .. of a part's n_tiles, `group` or what there are, against x's rows of k.
static void copy_a(float *to, const void *a, const ot__gemm *g, const ot__gemm_part *part,
                   int64_t n_tiles, int64_t t, int64_t group, int64_t stride, const block *x)
{
    const int64_t rows = part->row_end - part->row, at = x->k * g->a_column;
    tiles_of_a tiles = {.n = OT_MIN(n_tiles - t, group), .stride = stride};

    for (int64_t i = 0; i <= tiles.n; i++)
        tiles.first[i] = part->row + rows * (t + i) / n_tiles;
    if (g->a_type == OT_BF16) {
        copy_a_of(to, operand_at(a, at, OT_BF16), g, &tiles, x->depth, OT_BF16);
    } else if (g->a_type == OT_F16) {
        copy_a_of(to, operand_at(a, at, OT_F16), g, &tiles, x->depth, OT_F16);
    } else if (g->a_row != 1) {
        copy_a_of(to, operand_at(a, at, OT_F32), g, &tiles, x->depth, OT_F32);
    } else {
        const int64_t last = tiles.first[tiles.n - 1] + (int64_t)A_VECTORS * LANES;
        const int64_t left = (g->k - 1) * g->a_column + g->m - at - last; // floats behind the first
        const int64_t safe = left < 0 ? 0 : OT_MIN(left / g->a_column + 1, x->depth);

        copy_a_columns(to, (const float *)a + at, g, &tiles, x->depth, safe);
    }
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

enum { STRIP = 64 }; // k of all columns of a panel, before the next: they stay in the first cache

// Four columns of a strip, n a multiple of 4.
OT_SIMD_INLINE void transpose_strip(float *to, int64_t width, const void *b, int64_t b_column,
                                    int64_t n, ot_dtype type)
{
    float lines[4 * STRIP];
    const float *from = b;
    int64_t row = b_column;

    if (type != OT_F32) {
        for (int l = 0; l < 4; l++)
            copy_elements(lines + l * STRIP, operand_at(b, l * b_column, type), n, type);
        from = lines;
        row = STRIP;
    }
    for (int64_t p = 0; p < n; p += 4)
        ot__transpose4(to + p * width, width, from + p, row);
}

// The same where each column's k lie one after the other.
OT_SIMD_INLINE void copy_b_along(float *to, int64_t width, const void *b, int64_t b_column,
                                 int64_t columns, int64_t depth, ot_dtype type)
{
    const int64_t squares = columns / 4 * 4;

    for (int64_t at = 0; at < depth; at += STRIP) {
        const int64_t n = OT_MIN(depth - at, (int64_t)STRIP), whole = n / 4 * 4;

        for (int64_t j = 0; j < squares; j += 4) {
            transpose_strip(to + at * width + j, width, operand_at(b, j * b_column + at, type),
                            b_column, whole, type);
            for (int64_t p = at + whole; p < at + n; p++)
                for (int64_t l = j; l < j + 4; l++)
                    to[p * width + l] = element(b, l * b_column + p, type);
        }
    }
    for (int64_t j = squares; j < width; j++)
        for (int64_t p = 0; p < depth; p++)
            to[p * width + j] = j < columns ? element(b, j * b_column + p, type) : 0;
}

// The panels that are not read, or copied, where they lie.
OT_SIMD_INLINE void copy_b_of(const void *b, const ot__gemm *g, const block *x, ot_dtype type)
{
    for (int64_t p = 0; p < x->n_panels; p++) {
        const int64_t j = panel_vector(x, p) * LANES, width = panel_vector(x, p + 1) * LANES - j;
        const int64_t columns = OT_MIN(x->columns - j, width);
        const void *from = operand_at(b, j * g->b_column, type);
        float *to = x->copy + j * x->depth;

        if (x->origin != NULL && columns == width)
            continue;
        if (g->b_column == 1)
            copy_b_across(to, width, from, g->b_row, columns, x->depth, type);
        else
            copy_b_along(to, width, from, g->b_column, columns, x->depth, type);
    }
}

static void copy_b(const void *b, const ot__gemm *g, int64_t column, const block *x)
{
    const int64_t at = x->k * g->b_row + column * g->b_column;

    if (g->b_type == OT_BF16)
        copy_b_of(operand_at(b, at, OT_BF16), g, x, OT_BF16);
    else if (g->b_type == OT_F16)
        copy_b_of(operand_at(b, at, OT_F16), g, x, OT_F16);
    else
        copy_b_of(operand_at(b, at, OT_F32), g, x, OT_F32);
}

#endif
