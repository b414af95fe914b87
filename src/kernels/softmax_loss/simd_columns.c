// SPDX-License-Identifier: Apache-2.0
// Softmax along an axis that is not the last, in f32, compiled once per instruction set (OT_ISA): a
// lane is a line, so that neighbours are read together. Sums are of f32 over a few elements and of
// f64 over those.
#include "kernels/kernels.h"

#include "kernels/simd.h"

enum {
    LINES = OT__COLUMN_BLOCK,
    PART = 16, // elements of a line that are summed in f32
};

// Neighbouring lines.
typedef struct block {
    float *y;
    const float *x, *z;
    int64_t n; // of lines
} block;

static block find_block(const ot__column_lines *t, int64_t item)
{
    const int64_t n_blocks = ot__column_blocks(t->inner);
    const int64_t from = item % n_blocks * LINES;
    const int64_t at = item / n_blocks * t->n * t->inner + from;

    return (block){t->y + at, t->x + at, t->z == NULL ? NULL : t->z + at,
                   OT_MIN((int64_t)LINES, t->inner - from)};
}

static void find_largest(float *largest, const float *x, const ot__column_lines *t, int64_t lines)
{
    for (int64_t c = 0; c < lines; c++)
        largest[c] = x[c];
    for (int64_t k = 1; k < t->n; k++) {
        const float *xk = x + k * t->inner;

        OT_SIMD_LOOP
        for (int64_t c = 0; c < lines; c++)
            largest[c] = xk[c] > largest[c] ? xk[c] : largest[c];
    }
}

static void clear(double *sum, float *part, int64_t lines)
{
    for (int64_t c = 0; c < lines; c++) {
        sum[c] = 0;
        part[c] = 0;
    }
}

// Adds the parts to the sums where element k is the last of one.
static void close_part(double *sum, float *part, int64_t k, int64_t n, int64_t lines)
{
    if (k % PART != PART - 1 && k != n - 1)
        return;
    OT_SIMD_LOOP
    for (int64_t c = 0; c < lines; c++) {
        sum[c] += (double)part[c];
        part[c] = 0;
    }
}

static void softmax_columns(void *context, int64_t first, int64_t last)
{
    const ot__column_lines *t = context;
    float shift[LINES], part[LINES], factor[LINES];
    double sum[LINES];

    for (int64_t item = first; item < last; item++) {
        const block b = find_block(t, item);

        find_largest(shift, b.x, t, b.n);
        clear(sum, part, b.n);
        for (int64_t k = 0; k < t->n; k++) {
            const float *x = b.x + k * t->inner;
            float *y = b.y + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++) {
                const float power = ot__vexp(x[c] - shift[c]);

                y[c] = power;
                part[c] += power;
            }
            close_part(sum, part, k, t->n, b.n);
        }
        for (int64_t c = 0; c < b.n; c++)
            factor[c] = (float)(1 / sum[c]);
        for (int64_t k = 0; k < t->n; k++) {
            float *y = b.y + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                y[c] *= factor[c];
        }
    }
}

static void log_softmax_columns(void *context, int64_t first, int64_t last)
{
    const ot__column_lines *t = context;
    float shift[LINES], part[LINES], log_sum[LINES];
    double sum[LINES];

    for (int64_t item = first; item < last; item++) {
        const block b = find_block(t, item);

        find_largest(shift, b.x, t, b.n);
        clear(sum, part, b.n);
        for (int64_t k = 0; k < t->n; k++) {
            const float *x = b.x + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                part[c] += ot__vexp(x[c] - shift[c]);
            close_part(sum, part, k, t->n, b.n);
        }
        OT_SIMD_LOOP
        for (int64_t c = 0; c < b.n; c++)
            log_sum[c] = ot__vlog((float)sum[c]);
        for (int64_t k = 0; k < t->n; k++) {
            const float *x = b.x + k * t->inner;
            float *y = b.y + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                y[c] = x[c] - shift[c] - log_sum[c];
        }
    }
}

// x: dy, z: y
static void softmax_grad_columns(void *context, int64_t first, int64_t last)
{
    const ot__column_lines *t = context;
    float part[LINES], total[LINES];
    double sum[LINES];

    for (int64_t item = first; item < last; item++) {
        const block b = find_block(t, item);

        clear(sum, part, b.n);
        for (int64_t k = 0; k < t->n; k++) {
            const float *dy = b.x + k * t->inner, *y = b.z + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                part[c] += dy[c] * y[c];
            close_part(sum, part, k, t->n, b.n);
        }
        for (int64_t c = 0; c < b.n; c++)
            total[c] = (float)sum[c];
        for (int64_t k = 0; k < t->n; k++) {
            const float *dy = b.x + k * t->inner, *y = b.z + k * t->inner;
            float *dx = b.y + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                dx[c] = y[c] * (dy[c] - total[c]);
        }
    }
}

static void log_softmax_grad_columns(void *context, int64_t first, int64_t last)
{
    const ot__column_lines *t = context;
    float part[LINES], total[LINES];
    double sum[LINES];

    for (int64_t item = first; item < last; item++) {
        const block b = find_block(t, item);

        clear(sum, part, b.n);
        for (int64_t k = 0; k < t->n; k++) {
            const float *dy = b.x + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                part[c] += dy[c];
            close_part(sum, part, k, t->n, b.n);
        }
        for (int64_t c = 0; c < b.n; c++)
            total[c] = (float)sum[c];
        for (int64_t k = 0; k < t->n; k++) {
            const float *dy = b.x + k * t->inner, *y = b.z + k * t->inner;
            float *dx = b.y + k * t->inner;

            OT_SIMD_LOOP
            for (int64_t c = 0; c < b.n; c++)
                dx[c] = dy[c] - ot__vexp(y[c]) * total[c];
        }
    }
}

static void scaled_exp_columns(float *y, const float *x, const float *factor, int64_t n,
                               int64_t inner, int64_t lines)
{
    for (int64_t k = 0; k < n; k++) {
        const float *xk = x + k * inner;
        float *yk = y + k * inner;

        OT_SIMD_LOOP
        for (int64_t c = 0; c < lines; c++) {
            const float scaled = ot__vexp(xk[c]) * factor[c];

            yk[c] = factor[c] != 0 ? scaled : 0;
        }
    }
}

const ot__columns OT_ISA_NAME(ot__columns) = {
    .softmax = softmax_columns,
    .log_softmax = log_softmax_columns,
    .softmax_grad = softmax_grad_columns,
    .log_softmax_grad = log_softmax_grad_columns,
    .scaled_exp = scaled_exp_columns,
    .part = PART,
};
