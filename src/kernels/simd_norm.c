// Batch normalisation in f32, compiled once per instruction set (OT_ISA). An image's channels are
// worked on in tiles of rows with one channel a lane; row-major images, which have one channel in a
// run, take LANES neighbours as rows of that channel.
#include "kernels/kernels.h"

#include <string.h>

#include "simd.h"

enum { LANES = 16, TILE = 64, CHUNK = 128 }; // CHUNK rows are summed in f32, then in f64

// What is known of some elements: their number, mean, and sum of squared distances from it.
typedef struct moment {
    double n, mean, m2;
} moment;

static void merge(moment *a, double n, double mean, double m2)
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
        // The mean was rounded, so the squares are about another point than the true mean.
        for (int k = 0; k < width; k++) {
            const double exact = (double)sum[k] / (double)rows, off = exact - (double)mean[k];

            merge(&out[k], (double)rows, exact, (double)m2[k] - (double)rows * off * off);
        }
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

OT_SIMD_INLINE void sums_rows(const ot__norm_sums *p, const tile *t, int width, bool has_y,
                              bool has_out)
{
    const float *dy = p->dy, *y = p->y, *x = p->x;
    float *out = p->g_out;

    for (int64_t first = 0; first < t->rows; first += CHUNK) {
        const int64_t rows = OT_MIN((int64_t)CHUNK, t->rows - first);
        float sum_g[TILE] = {0}, sum_gx[TILE] = {0};

        for (int64_t r = 0; r < rows; r++, dy += t->stride, x += t->stride) {
            OT_SIMD_LOOP
            for (int k = 0; k < width; k++) {
                const float g = has_y && !(y[k] > 0.0F) ? 0.0F : dy[k];

                if (has_out)
                    out[k] = g;
                sum_g[k] += g;
                sum_gx[k] += g * (x[k] - p->mean[k]);
            }
            y = has_y ? y + t->stride : y;
            out = has_out ? out + t->stride : out;
        }
        for (int k = 0; k < width; k++) {
            p->sum_g[k] += (double)sum_g[k];
            p->sum_gx[k] += (double)sum_gx[k];
        }
    }
}

OT_SIMD_INLINE void sums_width(const ot__norm_sums *p, const tile *t, int width)
{
    if (p->y != NULL && p->g_out != NULL)
        sums_rows(p, t, width, true, true);
    else if (p->y != NULL)
        sums_rows(p, t, width, true, false);
    else if (p->g_out != NULL)
        sums_rows(p, t, width, false, true);
    else
        sums_rows(p, t, width, false, false);
}

static void sums_tile(const ot__norm_sums *p, const tile *t)
{
#define CALL(width) sums_width(p, t, width)
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

OT_SIMD_INLINE void dx_rows(const ot__norm_dx *p, const tile *t, int width, bool has_y)
{
    const float *dy = p->dy, *y = p->y, *x = p->x;
    float *dx = p->dx;

    for (int64_t r = 0; r < t->rows; r++, dy += t->stride, x += t->stride, dx += t->stride) {
        OT_SIMD_LOOP
        for (int k = 0; k < width; k++) {
            const float g = has_y && !(y[k] > 0.0F) ? 0.0F : dy[k];

            dx[k] = g * p->a[k] + ((x[k] - p->mean[k]) * p->b[k] + p->d[k]);
        }
        y = has_y ? y + t->stride : y;
    }
}

static void dx_tile(const ot__norm_dx *p, const tile *t)
{
#define CALL(width) (p->y != NULL ? dx_rows(p, t, width, true) : dx_rows(p, t, width, false))
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

// ---- one unit: the channels of one block in one image, which stand in one run ----

typedef struct job {
    const ot__channels *c;
    const ot__norm_apply *apply;
    const ot__norm_sums *sums;
    const ot__norm_dx *dx;
    const float *x;
    moment *moments; // per unit and channel
    double *partial; // sums of g, then those of g * (x - mean), per unit and channel
} job;

static void fill(float *lanes, const float *from)
{
    for (int k = 0; k < LANES; k++)
        lanes[k] = from[0];
}

static const float *shifted(const float *p, int64_t offset)
{
    return p == NULL ? NULL : p + offset;
}

static void unit_moments(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const float *x = j->x + unit * c->inner * c->width;
    moment *out = j->moments + unit * c->width;

    if (c->width == 1) {
        moment lanes[LANES] = {{0}};
        const tile full = {c->inner / LANES, LANES, LANES};
        const tile rest = {1, LANES, (int)(c->inner % LANES)};

        moments_of(lanes, x, &full);
        if (rest.width > 0)
            moments_of(lanes, x + full.rows * LANES, &rest);
        for (int k = 0; k < LANES; k++)
            merge(out, lanes[k].n, lanes[k].mean, lanes[k].m2);
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};

        moments_of(out + k, x + k, &t);
    }
}

static void unit_apply(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const ot__norm_apply *p = j->apply;
    const int64_t channel = unit % c->blocks * c->width, at = unit * c->inner * c->width;
    float mean[LANES], factor[LANES], offset[LANES];

    if (c->width == 1) {
        const int64_t full = c->inner / LANES * LANES;
        const tile t = {c->inner / LANES, LANES, LANES}, rest = {1, LANES, (int)(c->inner % LANES)};
        ot__norm_apply q = {mean, factor, offset, p->x + at, shifted(p->z, at), p->y + at, p->relu};

        fill(mean, p->mean + channel);
        fill(factor, p->factor + channel);
        fill(offset, p->offset + channel);
        apply_tile(&q, &t);
        q.x += full, q.y += full, q.z = shifted(q.z, full);
        apply_tile(&q, &rest);
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};
        const ot__norm_apply q = {p->mean + channel + k,
                                  p->factor + channel + k,
                                  p->offset + channel + k,
                                  p->x + at + k,
                                  shifted(p->z, at + k),
                                  p->y + at + k,
                                  p->relu};

        apply_tile(&q, &t);
    }
}

static void unit_sums(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const ot__norm_sums *p = j->sums;
    const int64_t channel = unit % c->blocks * c->width, at = unit * c->inner * c->width;
    double *sum_g = j->partial + unit * c->width;
    double *sum_gx = sum_g + c->outer * c->blocks * c->width;
    double lanes_g[LANES] = {0}, lanes_gx[LANES] = {0};
    float mean[LANES];

    if (c->width == 1) {
        const int64_t full = c->inner / LANES * LANES;
        const tile t = {c->inner / LANES, LANES, LANES}, rest = {1, LANES, (int)(c->inner % LANES)};
        ot__norm_sums q = {mean, p->dy + at, shifted(p->y, at), p->x + at, NULL, lanes_g, lanes_gx};

        q.g_out = p->g_out == NULL ? NULL : p->g_out + at;
        fill(mean, p->mean + channel);
        sums_tile(&q, &t);
        q.dy += full, q.x += full, q.y = shifted(q.y, full);
        q.g_out = q.g_out == NULL ? NULL : q.g_out + full;
        sums_tile(&q, &rest);
        for (int k = 0; k < LANES; k++) {
            sum_g[0] += lanes_g[k];
            sum_gx[0] += lanes_gx[k];
        }
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};
        const ot__norm_sums q = {p->mean + channel + k,
                                 p->dy + at + k,
                                 shifted(p->y, at + k),
                                 p->x + at + k,
                                 p->g_out == NULL ? NULL : p->g_out + at + k,
                                 sum_g + k,
                                 sum_gx + k};

        sums_tile(&q, &t);
    }
}

static void unit_dx(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const ot__norm_dx *p = j->dx;
    const int64_t channel = unit % c->blocks * c->width, at = unit * c->inner * c->width;
    float mean[LANES], a[LANES], b[LANES], d[LANES];

    if (c->width == 1) {
        const int64_t full = c->inner / LANES * LANES;
        const tile t = {c->inner / LANES, LANES, LANES}, rest = {1, LANES, (int)(c->inner % LANES)};
        ot__norm_dx q = {mean, a, b, d, p->dy + at, shifted(p->y, at), p->x + at, p->dx + at};

        fill(mean, p->mean + channel);
        fill(a, p->a + channel);
        fill(b, p->b + channel);
        fill(d, p->d + channel);
        dx_tile(&q, &t);
        q.dy += full, q.x += full, q.dx += full, q.y = shifted(q.y, full);
        dx_tile(&q, &rest);
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};
        const int64_t ch = channel + k, i = at + k;
        const ot__norm_dx q = {p->mean + ch, p->a + ch,        p->b + ch, p->d + ch,
                               p->dy + i,    shifted(p->y, i), p->x + i,  p->dx + i};

        dx_tile(&q, &t);
    }
}

// ---- whole tensors ----

static void range_moments(void *context, int64_t first, int64_t last)
{
    for (int64_t unit = first; unit < last; unit++)
        unit_moments(context, unit);
}

static void range_apply(void *context, int64_t first, int64_t last)
{
    for (int64_t unit = first; unit < last; unit++)
        unit_apply(context, unit);
}

static void range_sums(void *context, int64_t first, int64_t last)
{
    for (int64_t unit = first; unit < last; unit++)
        unit_sums(context, unit);
}

static void range_dx(void *context, int64_t first, int64_t last)
{
    for (int64_t unit = first; unit < last; unit++)
        unit_dx(context, unit);
}

static void for_units(job *j, void (*run)(void *context, int64_t first, int64_t last))
{
    const ot__channels *c = j->c;

    ot__parallel_for(c->outer * c->blocks, OT_PAR_MIN / (c->inner * c->width + 1) + 1, run, j);
}

static void moments(float *mean, float *var, const float *x, const ot__channels *c, void *scratch)
{
    const int64_t n_channels = c->blocks * c->width;
    job j = {.c = c, .x = x, .moments = scratch};

    memset(scratch, 0, (size_t)(c->outer * n_channels) * sizeof(moment));
    for_units(&j, range_moments);
    for (int64_t k = 0; k < n_channels; k++) {
        moment all = {0};

        for (int64_t o = 0; o < c->outer; o++) {
            const moment *m = &j.moments[o * n_channels + k];

            merge(&all, m->n, m->mean, m->m2);
        }
        mean[k] = (float)all.mean;
        var[k] = (float)(all.n > 0 ? all.m2 / all.n : 0.0);
    }
}

static void apply(const ot__norm_apply *p, const ot__channels *c)
{
    job j = {.c = c, .apply = p};

    for_units(&j, range_apply);
}

static void sums(const ot__norm_sums *p, const ot__channels *c, void *scratch)
{
    const int64_t n_channels = c->blocks * c->width, n = c->outer * n_channels;
    job j = {.c = c, .sums = p, .partial = scratch};

    memset(scratch, 0, 2 * (size_t)n * sizeof(double));
    for_units(&j, range_sums);
    for (int64_t k = 0; k < n_channels; k++) {
        p->sum_g[k] = p->sum_gx[k] = 0.0;
        for (int64_t o = 0; o < c->outer; o++) {
            p->sum_g[k] += j.partial[o * n_channels + k];
            p->sum_gx[k] += j.partial[n + o * n_channels + k];
        }
    }
}

static void dx(const ot__norm_dx *p, const ot__channels *c)
{
    job j = {.c = c, .dx = p};

    for_units(&j, range_dx);
}

extern const ot__norms OT_ISA_NAME(ot__norms);
const ot__norms OT_ISA_NAME(ot__norms) = {moments, apply, sums, dx};
