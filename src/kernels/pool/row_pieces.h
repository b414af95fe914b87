// SPDX-License-Identifier: Apache-2.0
// Rows of an image as simd_pool_rows.c reads them.
//
// A row is split into phases, as many as its stride: phase r has elements r, r + stride, and so on,
// so that what windows side by side have at one kernel position lies side by side. It begins where
// the first window does; what lies outside of the image is filled in.
#ifndef OT_KERNELS_POOL_ROW_PIECES_H
#define OT_KERNELS_POOL_ROW_PIECES_H

#include "kernels/pool/overlap.h"
#include "kernels/simd.h"

enum {
    LANES = OT_VECTOR_LANES,
    PIECE = 128, // windows of a row worked on at once
    ROOM = 512,  // elements of a row worked on at once: two registers of each phase at least
    REACH = OT__POOL_ROW_REACH,
    STRIDE = OT__POOL_ROW_STRIDE,
};

static inline int64_t round_to_lanes(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

typedef struct row_piece {
    int64_t first, n;      // windows
    int64_t start;         // of the first one in the row; below 0 in the padding
    int64_t pitch;         // elements of a phase: whole registers
    int64_t tap[REACH];    // per kernel position: where the first window has it in the phases
    float divisors[PIECE]; // of averages: elements of a window along the row
} row_piece;

// The piece that begins with window `first`.
static inline void cut_piece(row_piece *c, const ot__window *w, int64_t first)
{
    const int64_t stride = w->stride[2], dilation = w->dilation[2];
    const int64_t beyond = (w->kernel[2] - 1) * dilation / stride; // the last window's start
    const int64_t room = ROOM / stride / LANES * LANES - round_to_lanes(beyond);

    c->first = first;
    c->n = OT_MIN(OT_MIN(PIECE, room), w->out[2] - first);
    c->start = first * stride - w->pad[2];
    c->pitch = round_to_lanes(round_to_lanes(c->n) + beyond);
    for (int64_t k = 0; k < w->kernel[2]; k++)
        c->tap[k] = k * dilation % stride * c->pitch + k * dilation / stride;
}

// Elements first .. behind of the piece, of `stride` phases, lie in the image.
static inline void find_image_part(const row_piece *c, const ot__window *w, int64_t *first,
                                   int64_t *behind)
{
    const int64_t n = c->pitch * w->stride[2];

    *first = OT_MIN(OT_MAX(-c->start, 0), n);
    *behind = OT_MAX(OT_MIN(w->in[2] - c->start, n), *first);
}

OT_SIMD_INLINE void split_by(float *phases, const float *row, int64_t pitch, int64_t stride)
{
    OT_SIMD_LOOP
    for (int64_t i = 0; i < pitch; i++)
        for (int64_t r = 0; r < stride; r++)
            phases[r * pitch + i] = row[i * stride + r];
}

OT_SIMD_INLINE void join_by(float *row, const float *phases, int64_t pitch, int64_t stride)
{
    OT_SIMD_LOOP
    for (int64_t i = 0; i < pitch; i++)
        for (int64_t r = 0; r < stride; r++)
            row[i * stride + r] = phases[r * pitch + i];
}

// The row's phases, in `phases` unless the row is the only one.
static inline const float *split_row(float *phases, const float *row, int64_t pitch, int64_t stride)
{
    switch (stride) { // the usual ones become shuffles
    case 1:
        return row;
    case 2:
        split_by(phases, row, pitch, 2);
        return phases;
    case 3:
        split_by(phases, row, pitch, 3);
        return phases;
    case 4:
        split_by(phases, row, pitch, 4);
        return phases;
    default:
        split_by(phases, row, pitch, stride);
        return phases;
    }
}

// The reverse.
static inline const float *join_row(float *row, const float *phases, int64_t pitch, int64_t stride)
{
    switch (stride) {
    case 1:
        return phases;
    case 2:
        join_by(row, phases, pitch, 2);
        return row;
    case 3:
        join_by(row, phases, pitch, 3);
        return row;
    case 4:
        join_by(row, phases, pitch, 4);
        return row;
    default:
        join_by(row, phases, pitch, stride);
        return row;
    }
}

// The rows of an image that windows of one row meet: kernel position (d, h) has its row `depth` * d
// + `height` * h elements behind `start`.
typedef struct row_set {
    overlap part; // of the first two axes
    int64_t start, depth, height;
} row_set;

static inline void find_rows(row_set *s, const ot__window *w, int64_t d, int64_t h)
{
    find_inside(&s->part, 0, w, d);
    find_inside(&s->part, 1, w, h);
    s->start = (s->part.origin[0] * w->in[1] + s->part.origin[1]) * w->in[2];
    s->depth = w->dilation[0] * w->in[1] * w->in[2];
    s->height = w->dilation[1] * w->in[2];
}

#endif
