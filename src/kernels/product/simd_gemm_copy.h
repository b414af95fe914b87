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

// Where columns are contiguous: GROUP_ROWS of each at once, because whole lines of the cache are
// read of a column then. Of `safe` columns there are as many; they are stored, although the group
// may have fewer.
static void copy_a_columns(float *to, int64_t pitch, const float *a, int64_t a_column, int64_t rows,
                           int64_t depth, int64_t safe)
{
    for (int64_t p = 0; p < safe; p++)
        memcpy(to + p * pitch, a + p * a_column, GROUP_ROWS * sizeof *to);
    for (int64_t p = safe; p < depth; p++)
        memcpy(to + p * pitch, a + p * a_column, (size_t)rows * sizeof *to);
}

OT_SIMD_INLINE void copy_a_of(float *to, int64_t pitch, const void *a, const ot__gemm *g,
                              int64_t rows, int64_t depth, ot_dtype type)
{
    if (g->a_column == 1) {
        for (int64_t i = 0; i < rows; i++)
            copy_elements(to + i * pitch, operand_at(a, i * g->a_row, type), depth, type);
        return;
    }
    for (int64_t p = 0; p < depth; p++)
        for (int64_t i = 0; i < rows; i++)
            to[p * pitch + i] = element(a, i * g->a_row + p * g->a_column, type);
}

// Rows `row` .. of `a`, against x's rows of k: by rows or by columns, as they are contiguous,
// `pitch` floats apart.
static void copy_a(float *to, int64_t pitch, const void *a, const ot__gemm *g, int64_t row,
                   int64_t rows, const block *x)
{
    const int64_t at = row * g->a_row + x->k * g->a_column;

    if (g->a_type == OT_BF16) {
        copy_a_of(to, pitch, operand_at(a, at, OT_BF16), g, rows, x->depth, OT_BF16);
    } else if (g->a_type == OT_F16) {
        copy_a_of(to, pitch, operand_at(a, at, OT_F16), g, rows, x->depth, OT_F16);
    } else if (g->a_row != 1) {
        copy_a_of(to, pitch, operand_at(a, at, OT_F32), g, rows, x->depth, OT_F32);
    } else {
        // floats behind the first GROUP_ROWS
        const int64_t left = (g->k - 1) * g->a_column + g->m - at - GROUP_ROWS;
        const int64_t safe =
            left < 0 || pitch < GROUP_ROWS ? 0 : OT_MIN(left / g->a_column + 1, x->depth);

        copy_a_columns(to, pitch, (const float *)a + at, g->a_column, rows, x->depth, safe);
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
