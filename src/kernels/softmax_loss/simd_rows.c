// SPDX-License-Identifier: Apache-2.0
// Softmax and layer normalisation over contiguous rows in f32, compiled once per instruction set
// (OT_ISA). Sums run in several lanes whose order is fixed.
#include "kernels/kernels.h"

#include "kernels/simd_floats.h"

enum {
    LANES = 32,
    CACHE_LINE = 16,    // floats
    FETCHED = 1024,     // floats of a row, at most; the processor sees what comes after them
    SUM_ROWS_AHEAD = 8, // that are fetched while sums over rows are computed
};

// While a row is computed the next one is fetched, which may come from far. `writes` is a constant
// where this is called.
OT_SIMD_INLINE void fetch_next_row(const float *row, int64_t n, bool writes)
{
    for (int64_t k = 0; k < n && k < FETCHED; k += CACHE_LINE) {
        if (writes)
            __builtin_prefetch(row + n + k, 1);
        else
            __builtin_prefetch(row + n + k);
    }
}

static float row_max(const float *x, int64_t n)
{
    float lane[LANES];
    int64_t k = 0;

    for (int l = 0; l < LANES; l++)
        lane[l] = x[0];
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = x[k + l] > lane[l] ? x[k + l] : lane[l];
    for (int64_t l = 0; k + l < n; l++)
        lane[l] = x[k + l] > lane[l] ? x[k + l] : lane[l];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
    return lane[0];
}

static float lanes_sum(float *lane)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static float row_sum(const float *x, int64_t n)
{
    float lane[LANES] = {0};
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[k + l];
    for (int64_t l = 0; k + l < n; l++)
        lane[l] += x[k + l];
    return lanes_sum(lane);
}

// Sum of a * b.
static float row_dot(const float *a, const float *b, int64_t n)
{
    float lane[LANES] = {0};
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += a[k + l] * b[k + l];
    for (int64_t l = 0; k + l < n; l++)
        lane[l] += a[k + l] * b[k + l];
    return lanes_sum(lane);
}

// Sum of (x - centre)^2.
static float row_squares(const float *x, float centre, int64_t n)
{
    float lane[LANES] = {0};
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (x[k + l] - centre) * (x[k + l] - centre);
    for (int64_t l = 0; k + l < n; l++)
        lane[l] += (x[k + l] - centre) * (x[k + l] - centre);
    return lanes_sum(lane);
}

// ---- softmax ----

static void softmax_rows(void *context, int64_t first, int64_t last)
{
    const ot__row_lines *t = context;
    const int64_t n = t->n;

    for (int64_t r = first; r < last; r++) {
        const float *x = t->x + r * n;
        float *y = t->y + r * n, shift = row_max(x, n), factor;

        fetch_next_row(x, n, false);
        fetch_next_row(y, n, true);
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = ot__vexp_falling(x[k] - shift);
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

        fetch_next_row(x, n, false);
        fetch_next_row(y, n, true);
        for (int64_t at = 0; at < n; at += BLOCK) {
            const int64_t count = OT_MIN(n - at, (int64_t)BLOCK);

            OT_SIMD_LOOP
            for (int64_t k = 0; k < count; k++)
                block[k] = ot__vexp_falling(x[at + k] - shift);
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
        float *dx = t->y + r * n, sum = row_dot(dy, y, n);

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
        float *y = t->y + r * n, inv;

        fetch_next_row(y, n, true);
        inv = 1 / sqrtf(row_squares(x, centre, n) / (float)n + (float)t->epsilon);
        fetch_next_row(x, n, false);
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

// Sums of a * b * factor and of that times c - centre.
static void row_dots(const float *a, const float *b, float factor, const float *c, float centre,
                     int64_t n, float *sum, float *sum_c)
{
    float lane[LANES] = {0}, lane_c[LANES] = {0};
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) {
            const float ab = a[k + l] * b[k + l] * factor;

            lane[l] += ab;
            lane_c[l] += ab * (c[k + l] - centre);
        }
    for (int64_t l = 0; k + l < n; l++) {
        const float ab = a[k + l] * b[k + l] * factor;

        lane[l] += ab;
        lane_c[l] += ab * (c[k + l] - centre);
    }
    *sum = lanes_sum(lane);
    *sum_c = lanes_sum(lane_c);
}

static void layer_norm_dx(void *context, int64_t first, int64_t last)
{
    const ot__row_norm_grad *t = context;
    const int64_t n = t->columns;

    for (int64_t r = first; r < last; r++) {
        const float *x = (const float *)t->x + r * n, *dy = (const float *)t->dy + r * n;
        const float *scale = t->scale;
        const float centre = t->mean != NULL ? t->mean[r] : 0, inv = t->inv[r];
        float *dx = t->dx + r * n, sum, sum_x, from_sum, from_x;

        row_dots(dy, scale, inv, x, centre, n, &sum, &sum_x);
        from_sum = t->mean != NULL ? sum / (float)n : 0;
        from_x = sum_x * inv * inv / (float)n;
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            dx[k] = dy[k] * scale[k] * inv - (from_sum + (x[k] - centre) * from_x);
    }
}

OT_SIMD_INLINE float stored_float(const void *x, int64_t i, ot_dtype type)
{
    if (type == OT_F32)
        return ((const float *)x)[i];
    return type == OT_F16 ? ot__vwiden_f16(((const uint16_t *)x)[i])
                          : ot__vwiden_bf16(((const uint16_t *)x)[i]);
}

OT_SIMD_INLINE void fetch_stored(const void *x, int64_t i, int64_t n, ot_dtype type)
{
    const size_t size = type == OT_F32 ? sizeof(float) : sizeof(uint16_t);

    for (int64_t k = 0; k < n; k += CACHE_LINE)
        __builtin_prefetch((const char *)x + (size_t)(i + k) * size);
}

// The sums over all rows of n columns from c on. n, but for the last ones, and `type` are constants
// where these are called.
OT_SIMD_INLINE void sum_columns(const ot__row_norm_grad *t, int64_t c, int64_t n, ot_dtype type)
{
    float sum[OT__SUM_BLOCK] = {0}, sum_xh[OT__SUM_BLOCK] = {0};

    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t at = r * t->columns + c, ahead = at + SUM_ROWS_AHEAD * t->columns;
        const float centre = t->mean != NULL ? t->mean[r] : 0, inv = t->inv[r];

        fetch_stored(t->dy, ahead, n, type);
        fetch_stored(t->x, ahead, n, type);
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

// Of blocks first .. last - 1 of the columns.
OT_SIMD_INLINE void layer_norm_sums_of(const ot__row_norm_grad *t, int64_t first, int64_t last,
                                       ot_dtype type)
{
    enum { HALF = OT__SUM_BLOCK / 2 };
    const int64_t end = OT_MIN(last * OT__SUM_BLOCK, t->columns);
    int64_t c = first * OT__SUM_BLOCK;

    for (; c + OT__SUM_BLOCK <= end; c += OT__SUM_BLOCK)
        sum_columns(t, c, OT__SUM_BLOCK, type);
    if (c + HALF <= end) {
        sum_columns(t, c, HALF, type);
        c += HALF;
    }
    if (c < end)
        sum_columns(t, c, end - c, type);
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
