// SPDX-License-Identifier: Apache-2.0
// Slices along one axis, added up where indices name them. Indices that count up name slices that
// follow each other in both arrays: they are added as one run. Threads share out the elements of y,
// each of which is a sum in the order of the runs.
#include "kernels/kernels.h"

int64_t ot__index_sum_runs(ot__index_sum *s, ot__index_run *runs, const void *indices,
                           size_t index_size, int64_t n, int64_t extent, int64_t inner)
{
    int64_t longest = 0;

    s->runs = runs;
    s->n_runs = 0;
    s->y_line = extent * inner;
    s->u_line = n * inner;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = ot__ref_index_get(indices, index_size, i);
        ot__index_run *last = s->n_runs > 0 ? &runs[s->n_runs - 1] : NULL;

        at += at < 0 ? extent : 0;
        if (at < 0 || at >= extent)
            return i;
        if (last != NULL && last->to + last->n == at * inner)
            last->n += inner;
        else
            runs[s->n_runs++] = (ot__index_run){at * inner, i * inner, inner};
    }
    for (int64_t k = 0; k < s->n_runs; k++)
        if (runs[k].n > runs[longest].n)
            longest = k;
    if (longest > 0) {
        const ot__index_run kept = runs[0];

        runs[0] = runs[longest];
        runs[longest] = kept;
    }
    return -1;
}

void ot__index_sum_add(const ot__index_sum *s, int64_t lines, ot_dtype dtype)
{
    const ot__index_sums *sums = ot__index_sums_best();
    ot__index_sum job = *s;

    ot__parallel_for(lines * s->y_line, OT_PAR_MIN, dtype == OT_F64 ? sums->f64 : sums->f32, &job);
}
