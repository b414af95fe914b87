// Pools in f32 on any form, compiled once per instruction set (OT_ISA): a lane is a channel.
#include "kernels/kernels.h"

#include <stdatomic.h>
#include <string.h>

#include "simd.h"

enum { TILE = 16 }; // channels worked on at once

typedef struct job {
    const ot__channels *c; // of the input
    const ot__window *w;
    const float *x, *dy;
    float *y, *dx;
    int64_t *indices;         // written
    const int64_t *maxima_at; // read
    atomic_bool some_outside;
} job;

// First and last kernel positions along axis a that meet the input, for output position o.
static int64_t first_inside(const ot__window *w, int a, int64_t o)
{
    const int64_t at = o * w->stride[a] - w->pad[a];

    return at >= 0 ? 0 : (-at + w->dilation[a] - 1) / w->dilation[a];
}

static int64_t behind_inside(const ot__window *w, int a, int64_t o)
{
    const int64_t room = w->in[a] - (o * w->stride[a] - w->pad[a]);

    return room <= 0 ? 0 : OT_MIN(w->kernel[a], (room + w->dilation[a] - 1) / w->dilation[a]);
}

typedef struct best {
    float value[TILE];
    int32_t at[TILE]; // position in the plane
} best;

OT_SIMD_INLINE void meet(best *b, const float *x, int32_t at, int width)
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

// The part of one window that lies in the input, as kernel positions.
typedef struct overlap {
    int64_t first[OT__WINDOW_AXES], behind[OT__WINDOW_AXES], origin[OT__WINDOW_AXES];
} overlap;

static void find_inside(overlap *w, int a, const ot__window *window, int64_t o)
{
    w->first[a] = first_inside(window, a, o);
    w->behind[a] = behind_inside(window, a, o);
    w->origin[a] = o * window->stride[a] - window->pad[a];
}

static bool is_empty(const overlap *part)
{
    for (int a = 0; a < OT__WINDOW_AXES; a++)
        if (part->first[a] >= part->behind[a])
            return true;
    return false;
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

// The maxima of one window for `width` channels that start at x; 0 where nothing lies in it.
OT_SIMD_INLINE void window_maxima(best *b, const float *x, const ot__window *w, const overlap *part,
                                  int64_t stride, int width)
{
    const bool empty = is_empty(part);
    const int32_t first =
        empty ? 0
              : (int32_t)plane_position(w, part, part->first[0], part->first[1], part->first[2]);
    const float start = empty ? 0.0F : -INFINITY;

    for (int k = 0; k < width; k++) {
        b->value[k] = start;
        b->at[k] = first;
    }
    for (int64_t d = part->first[0]; d < part->behind[0]; d++)
        for (int64_t h = part->first[1]; h < part->behind[1]; h++)
            for (int64_t v = part->first[2]; v < part->behind[2]; v++) {
                const int64_t at = plane_position(w, part, d, h, v);

                meet(b, x + at * stride, (int32_t)at, width);
            }
}

// Channels first .. first + width - 1 of one unit (a block of channels in one image).
OT_SIMD_INLINE void maxima_of_width(const job *j, int64_t unit, int64_t first, int width)
{
    const ot__channels *c = j->c;
    const ot__window *w = j->w;
    const float *x = j->x + unit * w->n_in * c->width + first;
    float *y = j->y + unit * w->n_out * c->width + first;
    int64_t *indices = j->indices == NULL ? NULL : j->indices + unit * w->n_out * c->width + first;
    const int64_t plane = unit * c->width + first; // planes are numbered image by image
    overlap part;
    best b;

    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = 0; h < w->out[1]; h++)
            for (int64_t v = 0; v < w->out[2]; v++, y += c->width) {
                find_inside(&part, 0, w, d);
                find_inside(&part, 1, w, h);
                find_inside(&part, 2, w, v);
                window_maxima(&b, x, w, &part, c->width, width);
                for (int k = 0; k < width; k++)
                    y[k] = b.value[k];
                if (indices == NULL)
                    continue;
                for (int k = 0; k < width; k++)
                    indices[k] = (plane + k) * w->n_in + b.at[k];
                indices += c->width;
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

static void range_max_grad(void *context, int64_t first, int64_t last)
{
    job *j = context;
    const int64_t width = j->c->width, n_in = j->w->n_in;
    bool all_inside = true;

    for (int64_t unit = first; unit < last; unit++) {
        const int64_t at = unit * j->w->n_out * width;
        float *dx = j->dx + unit * n_in * width;

        memset(dx, 0, (size_t)(n_in * width) * sizeof *dx);
        for (int64_t o = 0; o < j->w->n_out; o++)
            for (int64_t k = 0; k < width; k++) {
                const int64_t i = at + o * width + k;
                const int64_t to = j->maxima_at[i] - (unit * width + k) * n_in;
                const bool inside = to >= 0 && to < n_in;

                all_inside = all_inside && inside;
                if (inside)
                    dx[to * width + k] += j->dy[i];
            }
    }
    if (!all_inside)
        atomic_store(&j->some_outside, true);
}

static void for_units(job *j, void (*run)(void *context, int64_t first, int64_t last))
{
    const ot__channels *c = j->c;
    const int64_t work = j->w->n_out * j->w->n_kernel * c->width;

    ot__parallel_for(c->outer * c->blocks, OT_PAR_MIN / (work + 1) + 1, run, j);
}

static void max_pool(float *y, int64_t *indices, const float *x, const ot__window *w,
                     const ot__channels *c)
{
    job j = {.c = c, .w = w, .x = x, .y = y, .indices = indices};

    for_units(&j, range_maxima);
}

static bool max_pool_grad(float *dx, const float *dy, const int64_t *indices, const ot__window *w,
                          const ot__channels *c)
{
    job j = {.c = c, .w = w, .dy = dy, .dx = dx, .maxima_at = indices};

    for_units(&j, range_max_grad);
    return !atomic_load(&j.some_outside);
}

extern const ot__pools OT_ISA_NAME(ot__pools);
const ot__pools OT_ISA_NAME(ot__pools) = {max_pool, max_pool_grad};
