// SPDX-License-Identifier: Apache-2.0
// One element type and one way of ref_cumulative.c.

static void LINES(void *context, int64_t first, int64_t last)
{
    const cumulative_job *j = context;

    for (int64_t line = first; line < last; line++) {
        const int64_t start = line / j->inner * j->n * j->inner + line % j->inner;
        ACC so_far = START;

        for (int64_t i = 0; i < j->n; i++) {
            const int64_t at = start + (j->is_reverse ? j->n - 1 - i : i) * j->inner;
            const ACC with = COMBINE(so_far, (ACC)((const T *)j->x)[at]);

            ((T *)j->y)[at] = (T)(j->is_exclusive ? so_far : with);
            so_far = with;
        }
    }
}

void CUMULATE(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool is_exclusive,
              bool is_reverse)
{
    cumulative_job j = {.y = y,
                        .x = x,
                        .n = n,
                        .inner = inner,
                        .is_exclusive = is_exclusive,
                        .is_reverse = is_reverse};

    if (n > 0)
        ot__parallel_for(outer * inner, OT_PAR_MIN / n + 1, LINES, &j);
}
