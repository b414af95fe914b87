// SPDX-License-Identifier: Apache-2.0
// Pools in f32 on any layout, compiled once per instruction set (OT_ISA): a lane is a channel.
#include "kernels/kernels.h"

#include <stdatomic.h>
#include <string.h>

#include "kernels/pool/overlap.h"
#include "kernels/simd.h"

enum { TILE = 16 }; // channels worked on at once

typedef struct job {
    const ot__channels *c; // of the input
    const ot__window *w;
    const float *x, *dy;
    float *y, *dx;
    ot__maxima at; // written or read
    atomic_bool some_outside;
} job;

typedef struct best {
    float value[TILE];
    int32_t at[TILE]; // position in the plane, or cell of the window
} best;

OT_SIMD_INLINE void take_larger(best *b, const float *x, int32_t at, int width)
{
    OT_SIMD_LOOP
    for (int k = 0; k < width; k++) {
        const float v = x[k], before = b->value[k];
        const int32_t was = b->at[k];
        // Two selections, for one with both conditions is left scalar: greater, or not a number.
        const float value = v > before ? v : before;
        const int32_t position = v > before ? at : was;

        b->value[k] = v != v ? v : value;
        b->at[k] = v != v ? at : position;
    }
}

// Position in the plane of a kernel position.
static inline int64_t plane_position(const ot__window *w, const overlap *part, int64_t d, int64_t h,
                                     int64_t v)
{
    return ((part->origin[0] + d * w->dilation[0]) * w->in[1] + part->origin[1] +
            h * w->dilation[1]) *
               w->in[2] +
           part->origin[2] + v * w->dilation[2];
}

static inline int64_t cell_number(const ot__window *w, int64_t d, int64_t h, int64_t v)
{
    return (d * w->kernel[1] + h) * w->kernel[2] + v;
}

// The maxima of one window for `width` channels that start at x; 0 where nothing lies in it.
OT_SIMD_INLINE void window_maxima(best *b, const float *x, const ot__window *w, const overlap *part,
                                  int64_t stride, int width, bool empty, bool cells)
{
    const int64_t *begin = part->first;
    const int64_t first = cells ? cell_number(w, begin[0], begin[1], begin[2])
                                : plane_position(w, part, begin[0], begin[1], begin[2]);
    const float start = empty ? 0.0F : -INFINITY;

    for (int k = 0; k < width; k++) {
        b->value[k] = start;
        b->at[k] = empty ? 0 : (int32_t)first;
    }
    for (int64_t d = part->first[0]; d < part->behind[0]; d++)
        for (int64_t h = part->first[1]; h < part->behind[1]; h++)
            for (int64_t v = part->first[2]; v < part->behind[2]; v++) {
                const int64_t at = plane_position(w, part, d, h, v);

                take_larger(b, x + at * stride, (int32_t)(cells ? cell_number(w, d, h, v) : at),
                            width);
            }
}

// Leave where the maxima of `width` windows are, the first one being number `i` in memory and of
// plane `plane`.
OT_SIMD_INLINE void write_maxima(const job *j, const best *b, int64_t i, int64_t plane, bool empty,
                                 int width)
{
    for (int k = 0; j->at.cells != NULL && k < width; k++)
        j->at.cells[i + k] = empty ? OT__NO_CELL : (uint8_t)b->at[k];
    for (int k = 0; j->at.positions != NULL && k < width; k++)
        j->at.positions[i + k] = empty ? -1 : b->at[k];
    for (int k = 0; j->at.indices != NULL && k < width; k++)
        j->at.indices[i + k] = (plane + k) * j->w->n_in + b->at[k];
}

// Channels first .. first + width - 1 of one unit (a block of channels in one image).
OT_SIMD_INLINE void maxima_of_width(const job *j, int64_t unit, int64_t first, int width)
{
    const ot__channels *c = j->c;
    const ot__window *w = j->w;
    const float *x = j->x + unit * w->n_in * c->width + first;
    int64_t i = unit * w->n_out * c->width + first;
    const int64_t plane = unit * c->width + first; // planes are numbered image by image
    overlap part;
    best b;

    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = 0; h < w->out[1]; h++)
            for (int64_t v = 0; v < w->out[2]; v++, i += c->width) {
                find_inside(&part, 0, w, d);
                find_inside(&part, 1, w, h);
                find_inside(&part, 2, w, v);
                const bool empty = misses_input(&part);

                window_maxima(&b, x, w, &part, c->width, width, empty, j->at.cells != NULL);
                for (int k = 0; k < width; k++)
                    j->y[i + k] = b.value[k];
                write_maxima(j, &b, i, plane, empty, width);
            }
}

static void range_maxima(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    for (int64_t unit = first; unit < last; unit++)
        for (int64_t k = 0; k < j->c->width; k += TILE) {
            const int width = (int)OT_MIN((int64_t)TILE, j->c->width - k);

            // Compiled for the usual widths, so that the best stay in registers.
            switch (width) {
            case TILE:
                maxima_of_width(j, unit, k, TILE);
                break;
            case TILE / 2:
                maxima_of_width(j, unit, k, TILE / 2);
                break;
            case 6:
                maxima_of_width(j, unit, k, 6);
                break;
            case 4:
                maxima_of_width(j, unit, k, 4);
                break;
            case 1:
                maxima_of_width(j, unit, k, 1);
                break;
            default:
                maxima_of_width(j, unit, k, width);
                break;
            }
        }
}

// ---- gradient ----

// From a window's start to each of its cells, in the plane.
static void cell_offsets(const ot__window *w, int64_t offset[OT__NO_CELL + 1])
{
    for (int cell = 0; cell <= OT__NO_CELL; cell++) {
        const int64_t h = cell / w->kernel[2], d = h / w->kernel[1];

        offset[cell] = 0; // what is no cell is refused
        if (cell < w->n_kernel)
            offset[cell] =
                (d * w->dilation[0] * w->in[1] + h % w->kernel[1] * w->dilation[1]) * w->in[2] +
                cell % w->kernel[2] * w->dilation[2];
    }
}

// Where window o starts in the plane, or would if there were no end to its axes.
static int64_t window_start(const ot__window *w, int64_t o)
{
    const int64_t v = o % w->out[2], h = o / w->out[2] % w->out[1], d = o / w->out[2] / w->out[1];

    return ((d * w->stride[0] - w->pad[0]) * w->in[1] + h * w->stride[1] - w->pad[1]) * w->in[2] +
           v * w->stride[2] - w->pad[2];
}

// The gradient of one window and `width` channels, number `i` and following in memory.
OT_SIMD_INLINE bool scatter_cells(const job *j, float *dx, int64_t i, int64_t start,
                                  const int64_t *offset)
{
    const int64_t width = j->c->width, n_in = j->w->n_in, n_kernel = j->w->n_kernel;
    bool all_inside = true;

    for (int64_t k = 0; k < width; k++) {
        const uint8_t cell = j->at.cells[i + k];
        const int64_t to = start + offset[cell];
        const bool inside = cell < n_kernel && to >= 0 && to < n_in;

        all_inside = all_inside && (inside || cell == OT__NO_CELL);
        if (inside)
            dx[to * width + k] += j->dy[i + k];
    }
    return all_inside;
}

// The same for the other two, `plane` being that of the first channel.
OT_SIMD_INLINE bool scatter_positions(const job *j, float *dx, int64_t i, int64_t plane)
{
    const int64_t width = j->c->width, n_in = j->w->n_in;
    bool all_inside = true;

    for (int64_t k = 0; k < width; k++) {
        const bool is_short = j->at.positions != NULL;
        const int64_t to =
            is_short ? j->at.positions[i + k] : j->at.indices[i + k] - (plane + k) * n_in;
        const bool inside = to >= 0 && to < n_in;

        all_inside = all_inside && (inside || (is_short && to == -1));
        if (inside)
            dx[to * width + k] += j->dy[i + k];
    }
    return all_inside;
}

static void range_max_grad(void *context, int64_t first, int64_t last)
{
    job *j = context;
    const int64_t width = j->c->width, n_in = j->w->n_in;
    int64_t offset[OT__NO_CELL + 1];
    bool all_inside = true;

    if (j->at.cells != NULL)
        cell_offsets(j->w, offset);
    for (int64_t unit = first; unit < last; unit++) {
        int64_t i = unit * j->w->n_out * width;
        float *dx = j->dx + unit * n_in * width;

        memset(dx, 0, (size_t)(n_in * width) * sizeof *dx);
        for (int64_t o = 0; o < j->w->n_out; o++, i += width) {
            const bool inside = j->at.cells != NULL
                                    ? scatter_cells(j, dx, i, window_start(j->w, o), offset)
                                    : scatter_positions(j, dx, i, unit * width);

            all_inside = all_inside && inside;
        }
    }
    if (!all_inside)
        atomic_store(&j->some_outside, true);
}

static void for_pool_units(job *j, void (*run)(void *context, int64_t first, int64_t last))
{
    const ot__channels *c = j->c;
    const int64_t work = j->w->n_out * j->w->n_kernel * c->width;

    ot__parallel_for(c->outer * c->blocks, OT_PAR_MIN / (work + 1) + 1, run, j);
}

static void max_pool(float *y, const ot__maxima *at, const float *x, const ot__window *w,
                     const ot__channels *c)
{
    job j = {.c = c, .w = w, .x = x, .y = y, .at = *at};

    for_pool_units(&j, range_maxima);
}

static bool max_pool_grad(float *dx, const float *dy, const ot__maxima *at, const ot__window *w,
                          const ot__channels *c)
{
    job j = {.c = c, .w = w, .dy = dy, .dx = dx, .at = *at};

    for_pool_units(&j, range_max_grad);
    return !atomic_load(&j.some_outside);
}

const ot__pools OT_ISA_NAME(ot__pools) = {max_pool, max_pool_grad, TILE};
