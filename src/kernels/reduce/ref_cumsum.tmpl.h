// SPDX-License-Identifier: Apache-2.0
// One element type of ref_cumsum.c.

static void FN(cumsum_lines)(void *context, int64_t first, int64_t last)
{
    const cumsum_job *j = context;

    for (int64_t line = first; line < last; line++) {
        const int64_t start = line / j->inner * j->n * j->inner + line % j->inner;
        ACC sum = 0;

        for (int64_t i = 0; i < j->n; i++) {
            const int64_t at = start + (j->is_reverse ? j->n - 1 - i : i) * j->inner;
            const ACC v = (ACC)((const T *)j->x)[at];

            ((T *)j->y)[at] = (T)(j->is_exclusive ? sum : sum + v);
            sum += v;
        }
    }
}

void FN(ot__ref_cumsum)(void *y, const void *x, int64_t outer, int64_t n, int64_t inner,
                        bool is_exclusive, bool is_reverse)
{
    cumsum_job j = {y, x, n, inner, is_exclusive, is_reverse};

    if (n > 0)
        ot__parallel_for(outer * inner, OT_PAR_MIN / n + 1, FN(cumsum_lines), &j);
}
