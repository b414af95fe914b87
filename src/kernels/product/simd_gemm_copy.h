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

OT_SIMD_INLINE void copy_a_of(float *to, const void *a, const ot__gemm *g, int64_t rows,
                              int64_t depth, ot_dtype type)
{
    if (g->a_column == 1) {
        for (int64_t i = 0; i < rows; i++)
            copy_elements(to + i * A_ROW, operand_at(a, i * g->a_row, type), depth, type);
    } else if (g->a_row == 1 && rows == TILE_ROWS) {
        for (int64_t p = 0; p < depth; p++)
            for (int i = 0; i < TILE_ROWS; i++)
                to[p * TILE_ROWS + i] = element(a, p * g->a_column + i, type);
    } else {
        for (int64_t p = 0; p < depth; p++)
            for (int64_t i = 0; i < rows; i++)
                to[p * TILE_ROWS + i] = element(a, i * g->a_row + p * g->a_column, type);
    }
}

static void copy_a(float *to, const void *a, const ot__gemm *g, int64_t row, int64_t rows,
                   int64_t k, int64_t depth)
{
    const int64_t at = row * g->a_row + k * g->a_column;

    if (g->a_type == OT_BF16)
        copy_a_of(to, operand_at(a, at, OT_BF16), g, rows, depth, OT_BF16);
    else if (g->a_type == OT_F16)
        copy_a_of(to, operand_at(a, at, OT_F16), g, rows, depth, OT_F16);
    else
        copy_a_of(to, operand_at(a, at, OT_F32), g, rows, depth, OT_F32);
}

// Panel of `columns` columns whose rows of k lie one after the other.
OT_SIMD_INLINE void copy_b_across(float *to, const void *b, int64_t b_row, int64_t columns,
                                  int64_t depth, ot_dtype type)
{
    for (int64_t p = 0; p < depth; p++) {
        float *row = to + p * TILE_COLUMNS;
        const void *from = operand_at(b, p * b_row, type);

        if (columns == TILE_COLUMNS && type == OT_F32) {
            for (int v = 0; v < TILE_VECTORS; v++)
                ot__vector_store(row + v * LANES, ot__vector_load((const float *)from + v * LANES));
        } else if (columns == TILE_COLUMNS) {
            copy_elements(row, from, TILE_COLUMNS, type);
        } else {
            for (int64_t j = 0; j < TILE_COLUMNS; j++)
                row[j] = j < columns ? element(from, j, type) : 0;
        }
    }
}

enum { STRIP = 64 }; // k that are widened at once

// Four columns of a panel, `depth` a multiple of 4.
OT_SIMD_INLINE void transpose_strip(float *to, const void *b, int64_t b_column, int64_t depth,
                                    ot_dtype type)
{
    float lines[4 * STRIP];

    for (int64_t at = 0; at < depth; at += STRIP) {
        const int64_t n = OT_MIN(depth - at, (int64_t)STRIP);
        const float *from = (const float *)b + at;
        int64_t row = b_column;

        if (type != OT_F32) {
            for (int l = 0; l < 4; l++)
                copy_elements(lines + l * STRIP, operand_at(b, l * b_column + at, type), n, type);
            from = lines;
            row = STRIP;
        }
        for (int64_t p = 0; p < n; p += 4)
            ot__transpose4(to + (at + p) * TILE_COLUMNS, TILE_COLUMNS, from + p, row);
    }
}

// The same where each column's k lie one after the other.
OT_SIMD_INLINE void copy_b_along(float *to, const void *b, int64_t b_column, int64_t columns,
                                 int64_t depth, ot_dtype type)
{
    const int64_t square = depth / 4 * 4;

    for (int64_t j = 0; j + 4 <= columns; j += 4) {
        transpose_strip(to + j, operand_at(b, j * b_column, type), b_column, square, type);
        for (int64_t p = square; p < depth; p++)
            for (int64_t l = j; l < j + 4; l++)
                to[p * TILE_COLUMNS + l] = element(b, l * b_column + p, type);
    }
    for (int64_t j = columns / 4 * 4; j < TILE_COLUMNS; j++)
        for (int64_t p = 0; p < depth; p++)
            to[p * TILE_COLUMNS + j] = j < columns ? element(b, j * b_column + p, type) : 0;
}

OT_SIMD_INLINE void copy_b_of(float *to, const void *b, const ot__gemm *g, int64_t columns,
                              int64_t depth, ot_dtype type)
{
    for (int64_t j = 0; j < columns; j += TILE_COLUMNS, to += depth * TILE_COLUMNS) {
        const int64_t n = OT_MIN(columns - j, (int64_t)TILE_COLUMNS);
        const void *from = operand_at(b, j * g->b_column, type);

        if (g->b_column == 1)
            copy_b_across(to, from, g->b_row, n, depth, type);
        else
            copy_b_along(to, from, g->b_column, n, depth, type);
    }
}

static void copy_b(float *to, const void *b, const ot__gemm *g, int64_t column, int64_t column_end,
                   int64_t k, int64_t depth)
{
    const int64_t at = k * g->b_row + column * g->b_column, n = column_end - column;

    if (g->b_type == OT_BF16)
        copy_b_of(to, operand_at(b, at, OT_BF16), g, n, depth, OT_BF16);
    else if (g->b_type == OT_F16)
        copy_b_of(to, operand_at(b, at, OT_F16), g, n, depth, OT_F16);
    else
        copy_b_of(to, operand_at(b, at, OT_F32), g, n, depth, OT_F32);
}

#endif
