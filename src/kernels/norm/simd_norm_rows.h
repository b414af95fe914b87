// SPDX-License-Identifier: Apache-2.0
// The loops of simd_norm.c over one tile of rows.
#ifndef OT_KERNELS_SIMD_NORM_ROWS_H
#define OT_KERNELS_SIMD_NORM_ROWS_H

#include "kernels/kernels.h"
#include "kernels/simd.h"

enum { LANES = 16, TILE = 64, CHUNK = 128 }; // CHUNK rows are summed in f32, then in f64

// What is known of some elements: their number, mean, and sum of squared distances from it.
typedef struct moment {
    double n, mean, m2;
} moment;

static void merge_moments(moment *a, double n, double mean, double m2)
{
    const double delta = mean - a->mean, total = a->n + n;

    if (n == 0)
        return;
    a->mean += delta * (n / total);
    a->m2 += m2 + delta * delta * (a->n * n / total);
    a->n = total;
}

// ---- one tile: `rows` rows, `stride` apart, of `width` channels ----

typedef struct tile {
    int64_t rows, stride;
    int width;
} tile;

// The loops below are compiled for the widths that matter, so that sums stay in registers.
#define FOR_WIDTH(width, call)                                                                     \
    do {                                                                                           \
        if ((width) == LANES)                                                                      \
            call(LANES);                                                                           \
        else if ((width) == TILE)                                                                  \
            call(TILE);                                                                            \
        else if ((width) == LANES / 2)                                                             \
            call(LANES / 2);                                                                       \
        else                                                                                       \
            call(width);                                                                           \
    } while (0)

OT_SIMD_INLINE void sum_rows(float *sum, const float *x, int64_t rows, int64_t stride, int width)
{
    for (int64_t r = 0; r < rows; r++, x += stride)
        OT_SIMD_LOOP
    for (int k = 0; k < width; k++)
        sum[k] += x[k];
}

OT_SIMD_INLINE void square_rows(float *sum, const float *mean, const float *x, int64_t rows,
                                int64_t stride, int width)
{
    for (int64_t r = 0; r < rows; r++, x += stride)
        OT_SIMD_LOOP
    for (int k = 0; k < width; k++)
        sum[k] += (x[k] - mean[k]) * (x[k] - mean[k]);
}

// What `rows` rows add to the moments of `width` channels: their sums, and those of squared
// distances from `mean`, which is a rounded mean.
OT_SIMD_INLINE void add_rows_moments(moment *out, const float *sum, const float *mean,
                                     const float *m2, int64_t rows, int width)
{
    for (int k = 0; k < width; k++) {
        const double exact = (double)sum[k] / (double)rows, off = exact - (double)mean[k];

        merge_moments(&out[k], (double)rows, exact, (double)m2[k] - (double)rows * off * off);
    }
}

OT_SIMD_INLINE void moments_of_width(moment *out, const float *x, const tile *t, int width)
{
    for (int64_t first = 0; first < t->rows; first += CHUNK) {
        const int64_t rows = OT_MIN((int64_t)CHUNK, t->rows - first);
        const float *at = x + first * t->stride;
        float sum[TILE] = {0}, mean[TILE], m2[TILE] = {0};

        sum_rows(sum, at, rows, t->stride, width);
        for (int k = 0; k < width; k++)
            mean[k] = sum[k] / (float)rows;
        square_rows(m2, mean, at, rows, t->stride, width);
        add_rows_moments(out, sum, mean, m2, rows, width);
    }
}

static void moments_of(moment *out, const float *x, const tile *t)
{
#define CALL(width) moments_of_width(out, x, t, width)
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

OT_SIMD_INLINE void apply_rows(const ot__norm_apply *p, const tile *t, int width, bool has_z,
                               bool relu)
{
    const float *x = p->x, *z = p->z;
    float *y = p->y;

    for (int64_t r = 0; r < t->rows; r++, x += t->stride, y += t->stride) {
        OT_SIMD_LOOP
        for (int k = 0; k < width; k++) {
            float v = (x[k] - p->mean[k]) * p->factor[k] + p->offset[k];

            v = has_z ? v + z[k] : v;
            y[k] = relu && v < 0.0F ? 0.0F : v; // NaN stays
        }
        z = has_z ? z + t->stride : z;
    }
}

OT_SIMD_INLINE void apply_width(const ot__norm_apply *p, const tile *t, int width)
{
    if (p->z != NULL && p->relu)
        apply_rows(p, t, width, true, true);
    else if (p->z != NULL)
        apply_rows(p, t, width, true, false);
    else if (p->relu)
        apply_rows(p, t, width, false, true);
    else
        apply_rows(p, t, width, false, false);
}

static void apply_tile(const ot__norm_apply *p, const tile *t)
{
#define CALL(width) apply_width(p, t, width)
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

// What tells where a Relu behind the normalisation let the gradient pass.
typedef enum mask {
    EVERYWHERE,
    BY_Y,
    BY_X, // from which y is computed again
} mask;

static mask mask_of(const float *y, const float *offset)
{
    return y != NULL ? BY_Y : offset != NULL ? BY_X : EVERYWHERE;
}

OT_SIMD_INLINE void widen_sums(double *sum, const float *rows, int width)
{
    for (int k = 0; k < width; k++)
        sum[k] += (double)rows[k];
}

// By n whole vectors a row: the compiler would add up lane by lane. n, by and has_out are constants
// where this is called.
OT_SIMD_INLINE void sums_of_vectors(const ot__norm_sums *p, const tile *t, int n, mask by,
                                    bool has_out)
{
    const float *dy = p->dy, *y = p->y, *x = p->x;
    float *out = p->g_out;

    for (int64_t first = 0; first < t->rows; first += CHUNK) {
        const int64_t rows = OT_MIN((int64_t)CHUNK, t->rows - first);
        ot__vector sum_g[TILE / OT_VECTOR_LANES] = {{0}}, sum_gx[TILE / OT_VECTOR_LANES] = {{0}};

        for (int64_t r = 0; r < rows; r++, dy += t->stride, x += t->stride) {
            OT_SIMD_UNROLL
            for (int v = 0; v < n; v++) {
                const int k = v * OT_VECTOR_LANES;
                const ot__vector centred = ot__vector_load(x + k) - ot__vector_load(p->mean + k);
                ot__vector g = ot__vector_load(dy + k);

                if (by == BY_Y)
                    g = (ot__vector)((ot__vector_bits)g &
                                     (ot__vector_bits)(ot__vector_load(y + k) > 0.0F));
                if (by == BY_X)
                    g = (ot__vector)((ot__vector_bits)g &
                                     (ot__vector_bits)(centred * ot__vector_load(p->factor + k) +
                                                           ot__vector_load(p->offset + k) >
                                                       0.0F));
                if (has_out)
                    ot__vector_store(out + k, g);
                sum_g[v] += g;
                sum_gx[v] += g * centred;
            }
            y = by == BY_Y ? y + t->stride : y;
            out = has_out ? out + t->stride : out;
        }
        widen_sums(p->sum_g, (const float *)sum_g, n * OT_VECTOR_LANES);
        widen_sums(p->sum_gx, (const float *)sum_gx, n * OT_VECTOR_LANES);
    }
}

OT_SIMD_INLINE void sums_rows(const ot__norm_sums *p, const tile *t, int width, mask by,
                              bool has_out)
{
    const float *dy = p->dy, *y = p->y, *x = p->x;
    float *out = p->g_out;

    if (width == LANES || width == TILE) {
        sums_of_vectors(p, t, width / OT_VECTOR_LANES, by, has_out);
        return;
    }
    for (int64_t first = 0; first < t->rows; first += CHUNK) {
        const int64_t rows = OT_MIN((int64_t)CHUNK, t->rows - first);
        float sum_g[TILE] = {0}, sum_gx[TILE] = {0};

        for (int64_t r = 0; r < rows; r++, dy += t->stride, x += t->stride) {
            OT_SIMD_LOOP
            for (int k = 0; k < width; k++) {
                const float centred = x[k] - p->mean[k];
                const float v = by == BY_Y   ? y[k]
                                : by == BY_X ? centred * p->factor[k] + p->offset[k]
                                             : 1.0F;
                const float g = v > 0.0F ? dy[k] : 0.0F;

                if (has_out)
                    out[k] = g;
                sum_g[k] += g;
                sum_gx[k] += g * centred;
            }
            y = by == BY_Y ? y + t->stride : y;
            out = has_out ? out + t->stride : out;
        }
        widen_sums(p->sum_g, sum_g, width);
        widen_sums(p->sum_gx, sum_gx, width);
    }
}

OT_SIMD_INLINE void sums_width(const ot__norm_sums *p, const tile *t, int width)
{
    const mask by = mask_of(p->y, p->offset);

    if (by == BY_Y && p->g_out != NULL)
        sums_rows(p, t, width, BY_Y, true);
    else if (by == BY_Y)
        sums_rows(p, t, width, BY_Y, false);
    else if (by == BY_X && p->g_out != NULL)
        sums_rows(p, t, width, BY_X, true);
    else if (by == BY_X)
        sums_rows(p, t, width, BY_X, false);
    else if (p->g_out != NULL)
        sums_rows(p, t, width, EVERYWHERE, true);
    else
        sums_rows(p, t, width, EVERYWHERE, false);
}

static void sums_tile(const ot__norm_sums *p, const tile *t)
{
#define CALL(width) sums_width(p, t, width)
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

OT_SIMD_INLINE void dx_rows(const ot__norm_dx *p, const tile *t, int width, mask by)
{
    const float *dy = p->dy, *y = p->y, *x = p->x;
    float *dx = p->dx;

    for (int64_t r = 0; r < t->rows; r++, dy += t->stride, x += t->stride, dx += t->stride) {
        OT_SIMD_LOOP
        for (int k = 0; k < width; k++) {
            const float centred = x[k] - p->mean[k];
            const float v = by == BY_Y   ? y[k]
                            : by == BY_X ? centred * p->a[k] + p->offset[k]
                                         : 1.0F;
            const float g = v > 0.0F ? dy[k] : 0.0F;

            dx[k] = g * p->a[k] + (centred * p->b[k] + p->d[k]);
        }
        y = by == BY_Y ? y + t->stride : y;
    }
}

OT_SIMD_INLINE void dx_width(const ot__norm_dx *p, const tile *t, int width)
{
    switch (mask_of(p->y, p->offset)) {
    case BY_Y:
        dx_rows(p, t, width, BY_Y);
        break;
    case BY_X:
        dx_rows(p, t, width, BY_X);
        break;
    default:
        dx_rows(p, t, width, EVERYWHERE);
        break;
    }
}

static void dx_tile(const ot__norm_dx *p, const tile *t)
{
#define CALL(width) dx_width(p, t, width)
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

#endif
