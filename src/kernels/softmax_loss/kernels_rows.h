// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: vector code over contiguous rows, and over lines whose
// elements are apart, in f32. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_ROWS_H
#define OT_KERNELS_KERNELS_ROWS_H

#include "tensor/tensor.h"

enum { OT__SUM_BLOCK = 64 }; // columns whose sums over rows are computed at once

// Rows of n elements, n at least 1. y may be x or z.
typedef struct ot__row_lines {
    float *y;
    const float *x, *z;
    int64_t n;
} ot__row_lines;

typedef struct ot__row_norm {
    float *y, *mean, *inv;      // mean and inv (rows) may be NULL
    const float *x, *scale, *b; // b may be NULL
    double epsilon;
    bool centered;
    int64_t columns;
} ot__row_norm;

typedef struct ot__row_norm_grad {
    float *dx, *dscale, *db;         // dscale and db may be NULL
    const void *dy, *x;              // f32 but for layer_norm_sums, where they are of `type`
    const float *scale, *mean, *inv; // mean NULL: not centered
    int64_t rows, columns;
    ot_dtype type; // f32, f16 or bf16
} ot__row_norm_grad;

// One table per instruction set (simd_rows.c). The functions with a context are for
// ot__parallel_for: rows `first` .. `last` - 1, which do not depend on each other.
typedef struct ot__rows {
    // of ot__row_lines
    void (*softmax)(void *context, int64_t first, int64_t last);
    void (*log_softmax)(void *context, int64_t first, int64_t last);
    void (*softmax_grad)(void *context, int64_t first, int64_t last);     // x: dy, z: y
    void (*log_softmax_grad)(void *context, int64_t first, int64_t last); // x: dy, z: y
    void (*scaled_exp)(float *y, const float *x, float factor, int64_t n);
    void (*layer_norm)(void *context, int64_t first, int64_t last); // of ot__row_norm
    // of ot__row_norm_grad; dx may be dy or x. The sums are for blocks of OT__SUM_BLOCK columns.
    void (*layer_norm_dx)(void *context, int64_t first, int64_t last);
    void (*layer_norm_sums)(void *context, int64_t first, int64_t last);
    int64_t exponentials; // computed at once by log_softmax
} ot__rows;

// ---- simd_columns.c: lines along an axis that is not the last ----

enum { OT__COLUMN_BLOCK = 64 }; // lines at once

// Lines of n elements that are `inner` apart, x (outer, n, inner), n at least 1. y may be x or z.
typedef struct ot__column_lines {
    float *y;
    const float *x, *z;
    int64_t n, inner;
} ot__column_lines;
static inline int64_t ot__column_blocks(int64_t inner)
{
    return (inner + OT__COLUMN_BLOCK - 1) / OT__COLUMN_BLOCK;
}

// One table per instruction set. The functions with a context, an ot__column_lines, are for
// ot__parallel_for: of outer * ot__column_blocks(inner) blocks those from `first` to `last` - 1.
typedef struct ot__columns {
    void (*softmax)(void *context, int64_t first, int64_t last);
    void (*log_softmax)(void *context, int64_t first, int64_t last);
    void (*softmax_grad)(void *context, int64_t first, int64_t last);     // x: dy, z: y
    void (*log_softmax_grad)(void *context, int64_t first, int64_t last); // x: dy, z: y
    // y = exp(x) * factor of `lines` neighbouring lines, 0 where the line's factor is
    void (*scaled_exp)(float *y, const float *x, const float *factor, int64_t n, int64_t inner,
                       int64_t lines);
    int64_t part; // elements of a line that are summed at once
} ot__columns;

#endif
