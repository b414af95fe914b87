// SPDX-License-Identifier: Apache-2.0
// Softmax and layer normalisation over contiguous rows in f32, compiled once per instruction set
// (OT_ISA). Sums run in several lanes whose order is fixed.
#include "kernels/kernels.h"

#include "kernels/simd_floats.h"

enum { LANES = OT__ROW_BLOCK };

static float row_max(const float *x, int64_t n)
{
    float lane[LANES], largest = x[0];
    int64_t k = 0;

    for (int l = 0; l < LANES; l++)
        lane[l] = x[0];
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = x[k + l] > lane[l] ? x[k + l] : lane[l];
    for (; k < n; k++)
        largest = x[k] > largest ? x[k] : largest;
    for (int l = 0; l < LANES; l++)
        largest = lane[l] > largest ? lane[l] : largest;
    return largest;
}

static float lanes_sum(const float *lane)
{
    float sum = 0;

    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

static float row_sum(const float *x, int64_t n)
{
    float lane[LANES] = {0}, rest = 0;
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[k + l];
    for (; k < n; k++)
        rest += x[k];
    return lanes_sum(lane) + rest;
}

// Sum of a * (b - centre).
static float row_dot(const float *a, const float *b, float centre, int64_t n)
{
    float lane[LANES] = {0}, rest = 0;
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += a[k + l] * (b[k + l] - centre);
    for (; k < n; k++)
        rest += a[k] * (b[k] - centre);
    return lanes_sum(lane) + rest;
}

// Sum of (x - centre)^2.
static float row_squares(const float *x, float centre, int64_t n)
{
    float lane[LANES] = {0}, rest = 0;
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (x[k + l] - centre) * (x[k + l] - centre);
    for (; k < n; k++)
        rest += (x[k] - centre) * (x[k] - centre);
    return lanes_sum(lane) + rest;
}

// ---- softmax ----

static void softmax_rows(void *context, int64_t first, int64_t last)
{
    const ot__row_lines *t = context;
    const int64_t n = t->n;

    for (int64_t r = first; r < last; r++) {
        const float *x = t->x + r * n;
        float *y = t->y + r * n, shift = row_max(x, n), factor;

        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = ot__vexp(x[k] - shift);
        factor = 1 / row_sum(y, n);
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] *= factor;
    }
}

enum { BLOCK = 256 }; // of exponentials that need not be kept

static void log_softmax_rows(void *context, int64_t first, int64_t last)
{
    const ot__row_lines *t = context;
    const int64_t n = t->n;
    float block[BLOCK];

    for (int64_t r = first; r < last; r++) {
        const float *x = t->x + r * n;
        float *y = t->y + r * n, shift = row_max(x, n), sum = 0, log_sum;

        for (int64_t at = 0; at < n; at += BLOCK) {
            const int64_t count = OT_MIN(n - at, (int64_t)BLOCK);

            OT_SIMD_LOOP
            for (int64_t k = 0; k < count; k++)
                block[k] = ot__vexp(x[at + k] - shift);
            sum += row_sum(block, count);
        }
        log_sum = logf(sum);
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = x[k] - shift - log_sum;
    }
}

// x: dy, z: y
static void softmax_grad_rows(void *context, int64_t first, int64_t last)
{
    const ot__row_lines *t = context;
    const int64_t n = t->n;

    for (int64_t r = first; r < last; r++) {
        const float *dy = t->x + r * n, *y = t->z + r * n;
        float *dx = t->y + r * n, sum = row_dot(dy, y, 0, n);

        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            dx[k] = y[k] * (dy[k] - sum);
    }
}

static void log_softmax_grad_rows(void *context, int64_t first, int64_t last)
{
    const ot__row_lines *t = context;
    const int64_t n = t->n;

    for (int64_t r = first; r < last; r++) {
        const float *dy = t->x + r * n, *y = t->z + r * n;
        float *dx = t->y + r * n, sum = row_sum(dy, n);

        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            dx[k] = dy[k] - ot__vexp(y[k]) * sum;
    }
}

static void scaled_exp(float *y, const float *x, float factor, int64_t n)
{
    OT_SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = ot__vexp(x[k]) * factor;
}

// ---- layer normalisation ----

static void layer_norm(void *context, int64_t first, int64_t last)
{
    const ot__row_norm *t = context;
    const int64_t n = t->columns;

    for (int64_t r = first; r < last; r++) {
        const float *x = t->x + r * n, *scale = t->scale, *b = t->b;
        const float centre = t->centered ? row_sum(x, n) / (float)n : 0;
        const float inv = 1 / sqrtf(row_squares(x, centre, n) / (float)n + (float)t->epsilon);
        float *y = t->y + r * n;

        if (b != NULL) {
            OT_SIMD_LOOP
            for (int64_t k = 0; k < n; k++)
                y[k] = (x[k] - centre) * inv * scale[k] + b[k];
        } else {
            OT_SIMD_LOOP
            for (int64_t k = 0; k < n; k++)
                y[k] = (x[k] - centre) * inv * scale[k];
        }
        if (t->mean != NULL)
            t->mean[r] = centre;
        if (t->inv != NULL)
            t->inv[r] = inv;
    }
}

static void layer_norm_dx(void *context, int64_t first, int64_t last)
{
    const ot__row_norm_grad *t = context;
    const int64_t n = t->columns;

    for (int64_t r = first; r < last; r++) {
        const float *x = (const float *)t->x + r * n, *dy = (const float *)t->dy + r * n;
        const float *scale = t->scale;
        const float centre = t->mean != NULL ? t->mean[r] : 0, inv = t->inv[r];
        float *dx = t->dx + r * n, from_sum, from_xh;

        // First the gradient of the normalised values, in dx.
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            dx[k] = dy[k] * scale[k] * inv;
        from_sum = t->mean != NULL ? row_sum(dx, n) / (float)n : 0;
        from_xh = row_dot(dx, x, centre, n) * inv * inv / (float)n;
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            dx[k] -= from_sum + (x[k] - centre) * from_xh;
    }
}

OT_SIMD_INLINE float stored_float(const void *x, int64_t i, ot_dtype type)
{
    if (type == OT_F32)
        return ((const float *)x)[i];
    return type == OT_F16 ? ot__vwiden_f16(((const uint16_t *)x)[i])
                          : ot__vwiden_bf16(((const uint16_t *)x)[i]);
}

// Blocks first .. last - 1 of the columns of the sums over all rows. `type` is a constant where
// this is called.
OT_SIMD_INLINE void layer_norm_sums_of(const ot__row_norm_grad *t, int64_t first, int64_t last,
                                       ot_dtype type)
{
    for (int64_t c = first * LANES; c < last * LANES && c < t->columns; c += LANES) {
        const int64_t n = OT_MIN(t->columns - c, (int64_t)LANES);
        float sum[LANES] = {0}, sum_xh[LANES] = {0};

        for (int64_t r = 0; r < t->rows; r++) {
            const int64_t at = r * t->columns + c;
            const float centre = t->mean != NULL ? t->mean[r] : 0, inv = t->inv[r];

            if (n == LANES) {
                for (int l = 0; l < LANES; l++) {
                    const float dy = stored_float(t->dy, at + l, type);

                    sum[l] += dy;
                    sum_xh[l] += dy * ((stored_float(t->x, at + l, type) - centre) * inv);
                }
                continue;
            }
            for (int64_t l = 0; l < n; l++) {
                const float dy = stored_float(t->dy, at + l, type);

                sum[l] += dy;
                sum_xh[l] += dy * ((stored_float(t->x, at + l, type) - centre) * inv);
            }
        }
        for (int64_t l = 0; l < n; l++) {
            if (t->dscale != NULL)
                t->dscale[c + l] = sum_xh[l];
            if (t->db != NULL)
                t->db[c + l] = sum[l];
        }
    }
}

static void layer_norm_sums(void *context, int64_t first, int64_t last)
{
    const ot__row_norm_grad *t = context;

    if (t->type == OT_F16)
        layer_norm_sums_of(t, first, last, OT_F16);
    else if (t->type == OT_BF16)
        layer_norm_sums_of(t, first, last, OT_BF16);
    else
        layer_norm_sums_of(t, first, last, OT_F32);
}

const ot__rows OT_ISA_NAME(ot__rows) = {
    .softmax = softmax_rows,
    .log_softmax = log_softmax_rows,
    .softmax_grad = softmax_grad_rows,
    .log_softmax_grad = log_softmax_grad_rows,
    .scaled_exp = scaled_exp,
    .layer_norm = layer_norm,
    .layer_norm_dx = layer_norm_dx,
    .layer_norm_sums = layer_norm_sums,
    .exponentials = BLOCK,
};
