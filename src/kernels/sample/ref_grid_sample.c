// SPDX-License-Identifier: Apache-2.0
// Images sampled at the positions of a grid, position by position.
#include "kernels/sample/grid_taps.h"

enum { TAPS = 64, AXIS_TAPS = 4 };

// The elements of a plane that make the one at a position.
typedef struct taps {
    int n;
    int64_t offset[TAPS];
    double weight[TAPS], slope[OT__WINDOW_AXES][TAPS];
} taps;

typedef struct job {
    void *to;
    const void *dy, *x, *grid;
    const ot__grid_sample *s;
    grid_axis axis[OT__WINDOW_AXES];
} job;

static job make_grid_job(const ot__grid_sample *s, const void *grid)
{
    job j = {.grid = grid, .s = s};

    for (int a = 0; a < OT__WINDOW_AXES; a++)
        j.axis[a] = make_grid_axis(s, a);
    return j;
}

static bool is_missing_axis(const ot__grid_sample *s, int axis)
{
    return axis < OT__WINDOW_AXES - s->n_axes;
}

static double read_coordinate(const job *j, int64_t position, int axis)
{
    const int64_t i = position * j->s->n_axes + OT__WINDOW_AXES - 1 - axis;

    return j->s->is_grid_wide ? ((const double *)j->grid)[i] : (double)((const float *)j->grid)[i];
}

// The taps along one axis, and their number; one that weighs 1 where the image lacks the axis.
static int find_axis_taps(const job *j, int64_t position, int axis, grid_tap *tap)
{
    const ot__grid_sample *s = j->s;
    const grid_axis *a = &j->axis[axis];
    grid_place place;
    int n;

    if (is_missing_axis(s, axis)) {
        *tap = (grid_tap){.weight = 1};
        return 1;
    }
    n = count_axis_taps(s->mode);
    place = find_grid_place(a, s->mode, s->padding, read_coordinate(j, position, axis));
    for (int k = 0; k < n; k++)
        tap[k] = find_tap(a, s->mode, s->padding, place, k);
    return n;
}

static void find_taps(const job *j, int64_t position, taps *t)
{
    const ot__grid_sample *s = j->s;
    grid_tap tap[OT__WINDOW_AXES][AXIS_TAPS];
    int n[OT__WINDOW_AXES];

    for (int axis = 0; axis < OT__WINDOW_AXES; axis++)
        n[axis] = find_axis_taps(j, position, axis, tap[axis]);
    t->n = 0;
    for (int d = 0; d < n[0]; d++)
        for (int h = 0; h < n[1]; h++)
            for (int w = 0; w < n[2]; w++, t->n++) {
                const grid_tap *a = &tap[0][d], *b = &tap[1][h], *c = &tap[2][w];

                t->offset[t->n] = (a->index * s->in[1] + b->index) * s->in[2] + c->index;
                t->weight[t->n] = a->weight * b->weight * c->weight;
                t->slope[0][t->n] = a->slope * b->weight * c->weight;
                t->slope[1][t->n] = a->weight * b->slope * c->weight;
                t->slope[2][t->n] = a->weight * b->weight * c->slope;
            }
}

#define TEMPLATE "kernels/sample/ref_grid_sample.tmpl.h"
#include "kernels/by_float.tmpl.h"
