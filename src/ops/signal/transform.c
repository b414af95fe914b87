// SPDX-License-Identifier: Apache-2.0
// Transforms of lines, as plans of operators have them: by reference kernels or by those for f32.
#include "ops/signal/signal.h"

static ot__transform_sizes exact_sizes(const ot__transform *t)
{
    const int64_t work = ot__fourier_scratch_size(t->n);

    return (ot__transform_sizes){.tables = (size_t)ot__fourier_table_size(t->n) * sizeof(double),
                                 .work = (size_t)work * sizeof(double),
                                 .scratch = (size_t)(t->n_parts * work) * sizeof(double)};
}

static ot__transform_sizes fast_sizes(const ot__transform *t)
{
    const int64_t points = t->fast.points;
    const int64_t floats = t->n_parts * ot__fast_fourier_scratch_size(&t->fast);
    const int64_t work = ot__fourier_table_size(points) + ot__fourier_scratch_size(points);

    return (ot__transform_sizes){.tables = (size_t)(ot__fast_fourier_table_size(&t->fast) + 1) / 2 *
                                           sizeof(double),
                                 .work = (size_t)work * sizeof(double),
                                 .scratch = (size_t)floats * sizeof(float)};
}

ot__transform_sizes ot__transform_plan(ot__transform *t, int n_threads)
{
    const int64_t n_lines = t->lines.outer * t->lines.inner;
    int64_t step = OT__FOURIER_LANES;

    if (t->by != NULL) {
        ot__fast_fourier_plan(&t->fast, t->n, &t->lines, t->by->lanes);
        step = t->fast.is_folded ? 1 : t->by->lanes;
    }
    t->n_parts = ot__fourier_parts(t->n, n_lines, step, n_threads);
    return t->by == NULL ? exact_sizes(t) : fast_sizes(t);
}

void ot__transform_make(ot__transform *t, void *tables, double *work)
{
    if (t->by == NULL)
        ot__fourier_make(&t->exact, t->n, tables, work);
    else
        ot__fast_fourier_make(&t->fast, tables, work);
}

void ot__transform_run_f32(const ot__transform *t, void *y, const void *x, void *scratch)
{
    if (t->by == NULL)
        ot__ref_fourier_f32(y, x, &t->exact, &t->lines, t->n_parts, scratch);
    else
        ot__fast_fourier_run(y, x, t->by, &t->fast, &t->lines, t->n_parts, scratch);
}

void ot__transform_run_f64(const ot__transform *t, void *y, const void *x, void *scratch)
{
    ot__ref_fourier_f64(y, x, &t->exact, &t->lines, t->n_parts, scratch);
}
