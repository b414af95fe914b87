// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: products of so few rows that reading b takes longest. Rows of b go by once,
// a few at a time, each from end to end, and are added to the rows of y, which stay in the first
// cache: tiles would read a few columns of all rows first, whose distance hides what comes next
// from the processor.
#ifndef OT_KERNELS_SIMD_GEMM_ROWS_H
#define OT_KERNELS_SIMD_GEMM_ROWS_H

#include "kernels/kernels.h"
#include "kernels/simd.h"

enum {
    MOST_ROWS_OF_Y = 4,
    NEAR_FLOATS = 4096, // of y, which stay in the first cache beside rows of b
    ROWS_OF_B = 8,      // at a time, for one row of y; for several so many that registers hold a
};

// Rows of b, and what they are multiplied by.
typedef struct passing_rows {
    const float *b;
    int64_t b_row;
    float a[MOST_ROWS_OF_Y][ROWS_OF_B];
} passing_rows;

// rows, n_passing and is_first are constants where this is called: y (rows, n) = the rows of b, or
// they are added to it.
OT_SIMD_INLINE void add_passing(float *y, int64_t y_row, const passing_rows *p, int64_t n, int rows,
                                int n_passing, bool is_first)
{
    const int64_t whole = n / LANES * LANES;

    for (int64_t j = 0; j < whole; j += LANES) {
        ot__vector sum[MOST_ROWS_OF_Y];

        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            sum[i] = is_first ? (ot__vector){0} : ot__vector_load(y + i * y_row + j);
        OT_SIMD_UNROLL
        for (int k = 0; k < n_passing; k++) {
            const ot__vector b = ot__vector_load(p->b + k * p->b_row + j);

            OT_SIMD_UNROLL
            for (int i = 0; i < rows; i++)
                sum[i] += p->a[i][k] * b;
        }
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            ot__vector_store(y + i * y_row + j, sum[i]);
    }
    for (int64_t j = whole; j < n; j++)
        OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
        float sum = is_first ? 0 : y[i * y_row + j];

        for (int k = 0; k < n_passing; k++)
            sum += p->a[i][k] * p->b[k * p->b_row + j];
        y[i * y_row + j] = sum;
    }
}

// Columns of y: a (rows, k) * b (k, n).
OT_SIMD_INLINE void multiply_rows_of_b(const ot__gemm_plan *plan, float *y, const float *a,
                                       const float *b, int64_t n, int rows, bool accumulates)
{
    const ot__gemm *g = &plan->g;
    const int at_once = rows > 2 ? ROWS_OF_B / 2 : ROWS_OF_B;
    const float alpha = (float)g->alpha;
    passing_rows p = {.b = b, .b_row = g->b_row};

    for (int64_t k = 0, more; k < g->k; k += more) {
        more = g->k - k >= at_once ? at_once : 1;
        for (int i = 0; i < rows; i++)
            for (int64_t e = 0; e < more; e++)
                p.a[i][e] = alpha * a[i * g->a_row + (k + e) * g->a_column];
        if (more > 1 && (k > 0 || accumulates))
            add_passing(y, g->y_row, &p, n, rows, at_once, false);
        else if (more > 1)
            add_passing(y, g->y_row, &p, n, rows, at_once, true);
        else if (k > 0 || accumulates)
            add_passing(y, g->y_row, &p, n, rows, 1, false);
        else
            add_passing(y, g->y_row, &p, n, rows, 1, true);
        p.b += more * p.b_row;
    }
}

static void run_rows(const ot__gemm_plan *plan, const ot__gemm_data *data,
                     const ot__gemm_part *part)
{
    const ot__gemm *g = &plan->g;
    const int64_t rows = part->row_end - part->row, most = NEAR_FLOATS / rows / LANES * LANES;
    const float *a = (const float *)data->a + part->row * g->a_row;

    for (int64_t j = part->column, n; j < part->column_end; j += n) {
        float *y = (float *)data->y + part->row * g->y_row + j;
        const float *b = (const float *)data->b + j;

        n = OT_MIN(part->column_end - j, most);
        switch (rows) {
        case 1:
            multiply_rows_of_b(plan, y, a, b, n, 1, data->accumulates);
            break;
        case 2:
            multiply_rows_of_b(plan, y, a, b, n, 2, data->accumulates);
            break;
        case 3:
            multiply_rows_of_b(plan, y, a, b, n, 3, data->accumulates);
            break;
        case 4:
            multiply_rows_of_b(plan, y, a, b, n, 4, data->accumulates);
            break;
        }
    }
}

#endif
