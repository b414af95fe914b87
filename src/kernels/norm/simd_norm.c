// SPDX-License-Identifier: Apache-2.0
// Batch normalisation, compiled once per instruction set (OT_ISA). An image's channels are
// worked on in tiles of rows with one channel a lane; row-major images, which have one channel in a
// run, take LANES neighbours as rows of that channel.
#include <string.h>

#include "simd_norm_types.h"

// ---- one unit: the channels of one block in one image, which stand in one run ----

typedef struct job {
    const ot__channels *c;
    const ot__norm_apply *apply;
    const ot__norm_sums *sums;
    const ot__norm_dx *dx;
    ot_dtype type; // of x
    const void *x;
    moment *moments; // per unit and channel
    double *partial; // sums of g, then those of g * (x - mean), per unit and channel
} job;

static void fill_lanes(float *lanes, const float *from)
{
    for (int k = 0; k < LANES; k++)
        lanes[k] = from[0];
}

static const float *shifted(const float *p, int64_t offset)
{
    return p == NULL ? NULL : p + offset;
}

// The element `offset` elements behind p, which may be NULL.
static const void *image_element(ot_dtype type, const void *p, int64_t offset)
{
    const int64_t size = type == OT_F32 ? sizeof(float) : sizeof(uint16_t);

    return p == NULL ? NULL : (const unsigned char *)p + offset * size;
}

static void *written(ot_dtype type, void *p, int64_t offset)
{
    return (void *)(uintptr_t)image_element(type, p, offset);
}

static void unit_moments(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const void *x = image_element(j->type, j->x, unit * c->inner * c->width);
    moment *out = j->moments + unit * c->width;

    if (c->width == 1) {
        moment lanes[LANES] = {{0}};
        const tile full = {c->inner / LANES, LANES, LANES};
        const tile rest = {1, LANES, (int)(c->inner % LANES)};

        typed_moments(lanes, j->type, x, &full);
        if (rest.width > 0)
            typed_moments(lanes, j->type, image_element(j->type, x, full.rows * LANES), &rest);
        for (int k = 0; k < LANES; k++)
            merge_moments(out, lanes[k].n, lanes[k].mean, lanes[k].m2);
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};

        typed_moments(out + k, j->type, image_element(j->type, x, k), &t);
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
        ot__norm_apply q = *p;

        q.mean = mean, q.factor = factor, q.offset = offset;
        q.x = image_element(p->type, p->x, at), q.y = written(p->type, p->y, at);
        q.z = image_element(p->type, p->z, at);
        fill_lanes(mean, p->mean + channel);
        fill_lanes(factor, p->factor + channel);
        fill_lanes(offset, p->offset + channel);
        typed_apply(&q, &t);
        q.x = image_element(p->type, q.x, full), q.y = written(p->type, q.y, full);
        q.z = image_element(p->type, q.z, full);
        if (rest.width > 0)
            typed_apply(&q, &rest);
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};
        const ot__norm_apply q = {p->mean + channel + k,
                                  p->factor + channel + k,
                                  p->offset + channel + k,
                                  p->type,
                                  image_element(p->type, p->x, at + k),
                                  image_element(p->type, p->z, at + k),
                                  written(p->type, p->y, at + k),
                                  p->relu};

        typed_apply(&q, &t);
    }
}

// The same with one channel's numbers in every lane; `lanes` is where they are put.
static const float *filled(float *lanes, const float *from, int64_t channel)
{
    if (from == NULL)
        return NULL;
    fill_lanes(lanes, from + channel);
    return lanes;
}

static void plain_sums(const job *j, int64_t unit, double *sum_g, double *sum_gx)
{
    const ot__channels *c = j->c;
    const ot__norm_sums *p = j->sums;
    const int64_t channel = unit % c->blocks, at = unit * c->inner;
    const int64_t full = c->inner / LANES * LANES;
    const tile t = {c->inner / LANES, LANES, LANES}, rest = {1, LANES, (int)(c->inner % LANES)};
    double lanes_g[LANES] = {0}, lanes_gx[LANES] = {0};
    float mean[LANES], factor[LANES], offset[LANES];
    ot__norm_sums q = {.mean = filled(mean, p->mean, channel),
                       .factor = filled(factor, p->factor, channel),
                       .offset = filled(offset, p->offset, channel),
                       .type = p->type,
                       .dy = image_element(p->type, p->dy, at),
                       .y = image_element(p->type, p->y, at),
                       .x = image_element(p->type, p->x, at),
                       .g_out = written(p->type, p->g_out, at),
                       .sum_g = lanes_g,
                       .sum_gx = lanes_gx};

    typed_sums(&q, &t);
    q.dy = image_element(p->type, q.dy, full), q.x = image_element(p->type, q.x, full);
    q.y = image_element(p->type, q.y, full), q.g_out = written(p->type, q.g_out, full);
    if (rest.width > 0)
        typed_sums(&q, &rest);
    for (int k = 0; k < LANES; k++) {
        sum_g[0] += lanes_g[k];
        sum_gx[0] += lanes_gx[k];
    }
}

static void unit_sums(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const ot__norm_sums *p = j->sums;
    const int64_t channel = unit % c->blocks * c->width, at = unit * c->inner * c->width;
    double *sum_g = j->partial + unit * c->width;
    double *sum_gx = sum_g + c->outer * c->blocks * c->width;

    if (c->width == 1) {
        plain_sums(j, unit, sum_g, sum_gx);
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};
        const ot__norm_sums q = {.mean = p->mean + channel + k,
                                 .factor = shifted(p->factor, channel + k),
                                 .offset = shifted(p->offset, channel + k),
                                 .type = p->type,
                                 .dy = image_element(p->type, p->dy, at + k),
                                 .y = image_element(p->type, p->y, at + k),
                                 .x = image_element(p->type, p->x, at + k),
                                 .g_out = written(p->type, p->g_out, at + k),
                                 .sum_g = sum_g + k,
                                 .sum_gx = sum_gx + k};

        typed_sums(&q, &t);
    }
}

static void plain_dx(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const ot__norm_dx *p = j->dx;
    const int64_t channel = unit % c->blocks, at = unit * c->inner;
    const int64_t full = c->inner / LANES * LANES;
    const tile t = {c->inner / LANES, LANES, LANES}, rest = {1, LANES, (int)(c->inner % LANES)};
    float mean[LANES], a[LANES], b[LANES], d[LANES], offset[LANES];
    ot__norm_dx q = {.mean = filled(mean, p->mean, channel),
                     .a = filled(a, p->a, channel),
                     .b = filled(b, p->b, channel),
                     .d = filled(d, p->d, channel),
                     .offset = filled(offset, p->offset, channel),
                     .type = p->type,
                     .dy = image_element(p->type, p->dy, at),
                     .y = image_element(p->type, p->y, at),
                     .x = image_element(p->type, p->x, at),
                     .dx = written(p->type, p->dx, at)};

    typed_dx(&q, &t);
    q.dy = image_element(p->type, q.dy, full), q.x = image_element(p->type, q.x, full);
    q.y = image_element(p->type, q.y, full), q.dx = written(p->type, q.dx, full);
    if (rest.width > 0)
        typed_dx(&q, &rest);
}

static void unit_dx(const job *j, int64_t unit)
{
    const ot__channels *c = j->c;
    const ot__norm_dx *p = j->dx;
    const int64_t channel = unit % c->blocks * c->width, at = unit * c->inner * c->width;

    if (c->width == 1) {
        plain_dx(j, unit);
        return;
    }
    for (int64_t k = 0; k < c->width; k += TILE) {
        const tile t = {c->inner, c->width, (int)OT_MIN((int64_t)TILE, c->width - k)};
        const int64_t ch = channel + k, i = at + k;
        const ot__norm_dx q = {.mean = p->mean + ch,
                               .a = p->a + ch,
                               .b = p->b + ch,
                               .d = p->d + ch,
                               .offset = shifted(p->offset, ch),
                               .type = p->type,
                               .dy = image_element(p->type, p->dy, i),
                               .y = image_element(p->type, p->y, i),
                               .x = image_element(p->type, p->x, i),
                               .dx = written(p->type, p->dx, i)};

        typed_dx(&q, &t);
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

static void for_norm_units(job *j, void (*run)(void *context, int64_t first, int64_t last))
{
    const ot__channels *c = j->c;

    ot__parallel_for(c->outer * c->blocks, OT_PAR_MIN / (c->inner * c->width + 1) + 1, run, j);
}

static void moments(float *mean, float *var, ot_dtype type, const void *x, const ot__channels *c,
                    void *scratch)
{
    const int64_t n_channels = c->blocks * c->width;
    job j = {.c = c, .type = type, .x = x, .moments = scratch};

    memset(scratch, 0, (size_t)(c->outer * n_channels) * sizeof(moment));
    for_norm_units(&j, range_moments);
    for (int64_t k = 0; k < n_channels; k++) {
        moment all = {0};

        for (int64_t o = 0; o < c->outer; o++) {
            const moment *m = &j.moments[o * n_channels + k];

            merge_moments(&all, m->n, m->mean, m->m2);
        }
        mean[k] = (float)all.mean;
        var[k] = (float)(all.n > 0 ? all.m2 / all.n : 0.0);
    }
}

static void normalise(const ot__norm_apply *p, const ot__channels *c)
{
    job j = {.c = c, .apply = p};

    for_norm_units(&j, range_apply);
}

static void sums(const ot__norm_sums *p, const ot__channels *c, void *scratch)
{
    const int64_t n_channels = c->blocks * c->width, n = c->outer * n_channels;
    job j = {.c = c, .sums = p, .partial = scratch};

    memset(scratch, 0, 2 * (size_t)n * sizeof(double));
    for_norm_units(&j, range_sums);
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

    for_norm_units(&j, range_dx);
}

const ot__norms OT_ISA_NAME(ot__norms) = {moments, normalise, sums, dx, LANES, TILE, CHUNK};
