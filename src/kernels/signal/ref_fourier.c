// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of lines of f32 or f64.
#include <string.h>

#include "kernels/kernels.h"

typedef struct fourier_job {
    void *y;
    const void *x;
    const ot__fourier *f;
    const ot__fourier_lines *l;
    int64_t n_lines, n_parts;
    double *scratch;
} fourier_job;

enum { LANES = OT__FOURIER_LANES };

// Where lines are real before the transform or behind it, two of them are one complex line: the
// second lies LANES further in a group.
static bool are_joined(const ot__fourier_lines *l)
{
    return l->from.parts == 1 || l->to.parts == 1;
}

static int64_t lines_of_group(const ot__fourier_lines *l)
{
    return are_joined(l) ? 2 * LANES : LANES;
}

// Where LANES of the lines of a group begin, of which n are there: behind the last one it is
// repeated.
typedef struct lane_places {
    int64_t n, from[LANES], to[LANES];
    bool are_even; // the same distance lies between any two
} lane_places;

static lane_places places_at(const fourier_job *j, int64_t first)
{
    const ot__fourier_lines *l = j->l;
    lane_places places = {.n = OT_MAX(OT_MIN(j->n_lines - first, (int64_t)LANES), (int64_t)0)};

    for (int64_t i = 0; i < LANES; i++) {
        const int64_t line = OT_MIN(first + i, j->n_lines - 1);
        const int64_t outer = line / l->inner, inner = line % l->inner;

        places.from[i] = outer * l->from.outer + inner * l->from.inner;
        places.to[i] = outer * l->to.outer + inner * l->to.inner;
    }
    places.are_even = places.n == LANES;
    for (int64_t i = 2; i < LANES; i++)
        places.are_even = places.are_even &&
                          places.from[i] - places.from[i - 1] == places.from[1] - places.from[0] &&
                          places.to[i] - places.to[i - 1] == places.to[1] - places.to[0];
    return places;
}

// How often a point counts.
static double point_count(const ot__fourier_side *side, int64_t point, int64_t n)
{
    return side->is_doubled && point > 0 && 2 * point != n ? 2.0 : 1.0;
}

// Points that are loaded or stored at a time.
enum { POINTS = 16 };

#define TEMPLATE "kernels/signal/ref_fourier.tmpl.h"
#include "kernels/by_float.tmpl.h"
