// SPDX-License-Identifier: Apache-2.0
// The loops of simd_norm_rows.h over tiles of f32, or of f16 or bf16, of which a few rows at a time
// are f32 on the stack.
#ifndef OT_KERNELS_SIMD_NORM_TYPES_H
#define OT_KERNELS_SIMD_NORM_TYPES_H

#include "simd_norm_rows.h"

enum { FEW = 512 }; // elements of one operand

// ---- some rows ----

typedef struct few_rows {
    const ot__floats *floats;
    ot_dtype type;
    tile in, out; // in memory, and on the stack, where they follow each other
    int64_t at;   // of the first, in elements
} few_rows;

// The rows behind those of `r`; false where there are none. Starts with none in `r`.
static bool next_rows(few_rows *r, const tile *t)
{
    const int64_t done = r->at / t->stride + r->in.rows;

    r->at = done * t->stride;
    r->in = (tile){OT_MIN((int64_t)(FEW / t->width), t->rows - done), t->stride, t->width};
    r->out = (tile){r->in.rows, t->width, t->width};
    return r->in.rows > 0;
}

static few_rows no_rows(ot_dtype type)
{
    return (few_rows){.floats = ot__floats_best(), .type = type};
}

// `from` NULL: none.
static const float *widen_rows(const few_rows *r, float *to, const void *from)
{
    const uint16_t *x = from;

    if (x == NULL)
        return NULL;
    x += r->at;
    if (r->in.stride == r->in.width)
        r->floats->widen[r->type](to, x, r->in.rows * r->in.width);
    else
        for (int64_t k = 0; k < r->in.rows; k++)
            r->floats->widen[r->type](to + k * r->in.width, x + k * r->in.stride, r->in.width);
    return to;
}

static void narrow_rows(const few_rows *r, void *to, const float *from)
{
    uint16_t *y = (uint16_t *)to + r->at;

    if (r->in.stride == r->in.width)
        r->floats->narrow[r->type](y, from, r->in.rows * r->in.width);
    else
        for (int64_t k = 0; k < r->in.rows; k++)
            r->floats->narrow[r->type](y + k * r->in.stride, from + k * r->in.width, r->in.width);
}

// ---- tiles ----

static void sum_tile(float *sum, const float *x, const tile *t)
{
#define CALL(width) sum_rows(sum, x, t->rows, t->stride, width)
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

static void square_tile(float *sum, const float *mean, const float *x, const tile *t)
{
#define CALL(width) square_rows(sum, mean, x, t->rows, t->stride, width)
    FOR_WIDTH(t->width, CALL);
#undef CALL
}

// In the chunks that f32 has, so that both see the same bits.
static void narrow_moments(moment *out, ot_dtype type, const void *x, const tile *t)
{
    for (int64_t first = 0; first < t->rows; first += CHUNK) {
        const tile chunk = {OT_MIN((int64_t)CHUNK, t->rows - first), t->stride, t->width};
        const uint16_t *at = (const uint16_t *)x + first * t->stride;
        float sum[TILE] = {0}, mean[TILE], m2[TILE] = {0}, few[FEW];

        for (few_rows r = no_rows(type); next_rows(&r, &chunk);)
            sum_tile(sum, widen_rows(&r, few, at), &r.out);
        for (int k = 0; k < t->width; k++)
            mean[k] = sum[k] / (float)chunk.rows;
        for (few_rows r = no_rows(type); next_rows(&r, &chunk);)
            square_tile(m2, mean, widen_rows(&r, few, at), &r.out);
        add_rows_moments(out, sum, mean, m2, chunk.rows, t->width);
    }
}

static void narrow_apply(const ot__norm_apply *p, const tile *t)
{
    float x[FEW], z[FEW];

    for (few_rows r = no_rows(p->type); next_rows(&r, t);) {
        ot__norm_apply q = *p;

        q.x = widen_rows(&r, x, p->x);
        q.z = widen_rows(&r, z, p->z);
        q.y = x;
        apply_tile(&q, &r.out);
        narrow_rows(&r, p->y, x);
    }
}

static void narrow_sums(const ot__norm_sums *p, const tile *t)
{
    float dy[FEW], x[FEW], y[FEW];

    for (few_rows r = no_rows(p->type); next_rows(&r, t);) {
        ot__norm_sums q = *p;

        q.dy = widen_rows(&r, dy, p->dy);
        q.x = widen_rows(&r, x, p->x);
        q.y = widen_rows(&r, y, p->y);
        q.g_out = p->g_out != NULL ? dy : NULL;
        sums_tile(&q, &r.out);
        if (p->g_out != NULL)
            narrow_rows(&r, p->g_out, dy);
    }
}

static void narrow_dx(const ot__norm_dx *p, const tile *t)
{
    float dy[FEW], x[FEW], y[FEW];

    for (few_rows r = no_rows(p->type); next_rows(&r, t);) {
        ot__norm_dx q = *p;

        q.dy = widen_rows(&r, dy, p->dy);
        q.x = widen_rows(&r, x, p->x);
        q.y = widen_rows(&r, y, p->y);
        q.dx = dy;
        dx_tile(&q, &r.out);
        narrow_rows(&r, p->dx, dy);
    }
}

// ---- of any type ----

static void typed_moments(moment *out, ot_dtype type, const void *x, const tile *t)
{
    if (type == OT_F32)
        moments_of(out, x, t);
    else
        narrow_moments(out, type, x, t);
}

static void typed_apply(const ot__norm_apply *p, const tile *t)
{
    if (p->type == OT_F32)
        apply_tile(p, t);
    else
        narrow_apply(p, t);
}

static void typed_sums(const ot__norm_sums *p, const tile *t)
{
    if (p->type == OT_F32)
        sums_tile(p, t);
    else
        narrow_sums(p, t);
}

static void typed_dx(const ot__norm_dx *p, const tile *t)
{
    if (p->type == OT_F32)
        dx_tile(p, t);
    else
        narrow_dx(p, t);
}

#endif
