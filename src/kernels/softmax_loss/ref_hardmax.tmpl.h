// SPDX-License-Identifier: Apache-2.0
// One element type of ref_hardmax.c.

typedef struct FN(hardmax_job) {
    T *y;
    const T *x;
    const ot__lines *lines;
} FN(hardmax_job);

static void FN(hardmax_lines)(void *context, int64_t first, int64_t last)
{
    const FN(hardmax_job) *j = context;
    const int64_t n = j->lines->n, inner = j->lines->inner;

    for (int64_t line = first; line < last; line++) {
        const int64_t start = line / inner * n * inner + line % inner;
        const T *x = j->x + start;
        T *y = j->y + start; // may be x: which element is the greatest is found first
        int64_t at = 0;

        for (int64_t i = 1; i < n; i++) {
            const T best = x[at * inner], v = x[i * inner];

            if (v > best || (v != v && best == best)) // NaN is greater than all
                at = i;
        }
        for (int64_t i = 0; i < n; i++)
            y[i * inner] = i == at;
    }
}

void FN(ot__ref_hardmax)(T *y, const T *x, const ot__lines *l)
{
    FN(hardmax_job) j = {y, x, l};

    if (l->outer > 0)
        ot__parallel_for(l->outer * l->inner, OT_PAR_MIN / l->n + 1, FN(hardmax_lines), &j);
}
