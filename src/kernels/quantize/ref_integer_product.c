// SPDX-License-Identifier: Apache-2.0
// Products of integers of 8 bits. One operand is widened to 16 bits beforehand, less its zero
// points, so that the innermost loop multiplies 16 by 16 bits and adds in 32, which wrap.
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

enum { ROWS = 4, COLUMNS = 256 }; // of a tile, whose sums stay in the first cache

static int integer_at(const void *data, bool is_signed, int64_t i)
{
    return is_signed ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
}

static int zero_of(const ot__zero_points *zero, bool is_signed, int64_t i)
{
    return zero->count == 0 ? 0 : integer_at(zero->data, is_signed, i % zero->count);
}

// ---- widening ----

typedef struct widening {
    int16_t *y;
    const void *x;
    const ot__zero_points *zero;
    int64_t columns;
    bool is_signed;
} widening;

static void widen_integer_rows(void *context, int64_t first, int64_t last)
{
    const widening *w = context;
    const bool differ = w->zero->count > 1;
    const int zero = zero_of(w->zero, w->is_signed, 0);

    for (int64_t r = first; r < last; r++) {
        int16_t *y = w->y + r * w->columns;

        if (w->is_signed) {
            const int8_t *x = (const int8_t *)w->x + r * w->columns, *zeros = w->zero->data;

            for (int64_t c = 0; c < w->columns; c++)
                y[c] = (int16_t)(x[c] - (differ ? zeros[c] : zero));
        } else {
            const uint8_t *x = (const uint8_t *)w->x + r * w->columns, *zeros = w->zero->data;

            for (int64_t c = 0; c < w->columns; c++)
                y[c] = (int16_t)(x[c] - (differ ? zeros[c] : zero));
        }
    }
}

void ot__ref_integer_widen(int16_t *y, const void *x, bool is_signed, const ot__zero_points *zero,
                           int64_t rows, int64_t columns)
{
    widening w = {y, x, zero, columns, is_signed};

    ot__parallel_for(rows, OT_PAR_MIN / OT_MAX(columns, 1) + 1, widen_integer_rows, &w);
}

// ---- products ----

typedef struct product_job {
    int32_t *y;
    const ot__integer_product *p;
    int64_t tiles; // along a row
} product_job;

static void add_products(uint32_t *sum, int16_t a, const int16_t *b, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        sum[j] += (uint32_t)((int)a * (int)b[j]);
}

static void multiply_tile(const product_job *job, int64_t row, int64_t column)
{
    const ot__integer_product *p = job->p;
    const int64_t rows = OT_MIN((int64_t)ROWS, p->m - row);
    const int64_t columns = OT_MIN((int64_t)COLUMNS, p->n - column);
    uint32_t sums[ROWS][COLUMNS] = {{0}};
    int zeros[ROWS];

    for (int64_t r = 0; r < rows; r++)
        zeros[r] = zero_of(&p->a_zero, p->a_is_signed, row + r);
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t r = 0; r < rows; r++)
            add_products(
                sums[r],
                (int16_t)(integer_at(p->a, p->a_is_signed, (row + r) * p->k + k) - zeros[r]),
                p->b + k * p->n + column, columns);
    for (int64_t r = 0; r < rows; r++)
        memcpy(job->y + (row + r) * p->n + column, sums[r], (size_t)columns * sizeof(uint32_t));
}

static void multiply_tiles(void *context, int64_t first, int64_t last)
{
    const product_job *job = context;

    for (int64_t i = first; i < last; i++)
        multiply_tile(job, i / job->tiles * ROWS, i % job->tiles * COLUMNS);
}

void ot__ref_integer_product(int32_t *y, const ot__integer_product *p)
{
    product_job job = {y, p, (p->n + COLUMNS - 1) / COLUMNS};
    const int64_t work = ROWS * OT_MIN(p->n, (int64_t)COLUMNS) * OT_MAX(p->k, 1);

    ot__parallel_for((p->m + ROWS - 1) / ROWS * job.tiles, OT_PAR_MIN / OT_MAX(work, 1) + 1,
                     multiply_tiles, &job);
}

// ---- back to 8 bits ----

typedef struct requantizing {
    void *y;
    const int32_t *x;
    const ot__requantization *q;
} requantizing;

static float scale_at_column(const ot__requantization *q, float row_scale, int64_t c)
{
    return row_scale * q->column_scale[q->columns_differ ? c : 0] / q->y_scale;
}

static void requantize_rows(void *context, int64_t first, int64_t last)
{
    const requantizing *job = context;
    const ot__requantization *q = job->q;
    const float low = (float)((q->y_is_signed ? INT8_MIN : 0) - q->y_zero);
    const float high = (float)((q->y_is_signed ? INT8_MAX : UINT8_MAX) - q->y_zero);

    for (int64_t r = first; r < last; r++) {
        const float row_scale = q->row_scale[q->rows_differ ? r % q->rows_differ : 0];
        const uint32_t addend = q->bias != NULL ? (uint32_t)q->bias[r] : 0;

        for (int64_t c = 0; c < q->columns; c++) {
            const int32_t x = (int32_t)((uint32_t)job->x[r * q->columns + c] + addend);
            const float scaled = rintf((float)x * scale_at_column(q, row_scale, c));
            const int y = (int)fmaxf(low, fminf(high, scaled)) + q->y_zero; // never NaN

            ((uint8_t *)job->y)[r * q->columns + c] = (uint8_t)y; // or its bits as i8
        }
    }
}

void ot__ref_requantize(void *y, const int32_t *x, const ot__requantization *q)
{
    requantizing job = {y, x, q};

    ot__parallel_for(q->rows, OT_PAR_MIN / OT_MAX(q->columns, 1) + 1, requantize_rows, &job);
}
