// SPDX-License-Identifier: Apache-2.0
// One element type of ref_argmax.c.

static void FN(arg_lines)(void *context, int64_t first, int64_t last)
{
    const arg_job *j = context;

    for (int64_t line = first; line < last; line++) {
        const T *x = (const T *)j->x + line / j->inner * j->n * j->inner + line % j->inner;
        ACC best = LOAD(x[0]);
        int64_t at = 0;

        for (int64_t i = 1; i < j->n; i++) {
            const ACC v = LOAD(x[i * j->inner]);
            const bool is_better =
                (j->is_max ? v > best : v < best) || (IS_NAN(v) && !IS_NAN(best));
            const bool is_equal = v == best || (IS_NAN(v) && IS_NAN(best));

            if (is_better || (is_equal && j->is_last)) {
                best = v;
                at = i;
            }
        }
        j->y[line] = at;
    }
}

void FN(ot__ref_arg)(int64_t *y, const void *x, int64_t outer, int64_t n, int64_t inner,
                     bool is_max, bool is_last)
{
    arg_job j = {y, x, n, inner, is_max, is_last};

    ot__parallel_for(outer * inner, OT_PAR_MIN / n + 1, FN(arg_lines), &j);
}
