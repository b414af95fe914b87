// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of lines of f32 or f64.
#include <string.h>

#include "kernels/signal/fourier.h"

typedef struct fourier_job {
    void *y;
    const void *x;
    const ot__fourier *f;
    const ot__fourier_lines *l;
    int64_t n_lines, n_parts;
    double *scratch;
} fourier_job;

// Where the lines of a group begin; behind the last one it is repeated.
typedef struct line_group {
    int64_t n, from[OT__FOURIER_LANES], to[OT__FOURIER_LANES];
} line_group;

static line_group group_at(const fourier_job *j, int64_t first)
{
    const ot__fourier_lines *l = j->l;
    line_group g = {.n = OT_MIN(j->n_lines - first, (int64_t)OT__FOURIER_LANES)};

    for (int64_t i = 0; i < OT__FOURIER_LANES; i++) {
        const int64_t line = first + OT_MIN(i, g.n - 1);
        const int64_t outer = line / l->inner, inner = line % l->inner;

        g.from[i] = outer * l->from.outer + inner * l->from.inner;
        g.to[i] = outer * l->to.outer + inner * l->to.inner;
    }
    return g;
}

// How often a point counts.
static double point_count(const ot__fourier_side *side, int64_t point, int64_t n)
{
    return side->is_doubled && point > 0 && 2 * point != n ? 2.0 : 1.0;
}

#define TEMPLATE "kernels/signal/ref_fourier.tmpl.h"
#include "kernels/by_float.tmpl.h"
