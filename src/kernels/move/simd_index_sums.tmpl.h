// SPDX-License-Identifier: Apache-2.0
// One element type of simd_index_sums.c.

OT_SIMD_INLINE void FN(add_run)(T *y, const T *u, int64_t n)
{
    if (n == 1) {
        y[0] += u[0];
        return;
    }
    OT_SIMD_LOOP
    for (int64_t i = 0; i < n; i++)
        y[i] += u[i];
}

// The first run becomes what is there, and zeros beside it.
OT_SIMD_INLINE void FN(begin_line)(T *y, const T *u, const ot__index_run *r, int64_t from,
                                   int64_t to)
{
    for (int64_t i = from; i < r->to; i++)
        y[i] = 0;
    OT_SIMD_LOOP
    for (int64_t i = 0; i < r->n; i++)
        y[r->to + i] = u[r->from + i];
    for (int64_t i = r->to + r->n; i < to; i++)
        y[i] = 0;
}

// Elements [from, to) of a line.
static void FN(add_line)(const ot__index_sum *s, T *y, const T *u, int64_t from, int64_t to)
{
    int64_t k = 0;

    if (!s->adds) {
        ot__index_run first = {from, 0, 0};

        if (s->n_runs > 0)
            first = clip_run(&s->runs[k++], from, to);
        if (first.n <= 0)
            first = (ot__index_run){from, 0, 0};
        FN(begin_line)(y, u, &first, from, to);
    }
    for (; k < s->n_runs; k++) {
        const ot__index_run run = clip_run(&s->runs[k], from, to);

        if (run.n > 0)
            FN(add_run)(y + run.to, u + run.from, run.n);
    }
}

// Elements [first, last) of y.
static void FN(add_lines)(void *context, int64_t first, int64_t last)
{
    const ot__index_sum *s = context;

    while (first < last) {
        const int64_t line = first / s->y_line, from = first - line * s->y_line;
        const int64_t to = OT_MIN(s->y_line, from + last - first);

        FN(add_line)(s, (T *)s->y + line * s->y_line, (const T *)s->u + line * s->u_line, from, to);
        first += to - from;
    }
}
