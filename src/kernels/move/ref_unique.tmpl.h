// SPDX-License-Identifier: Apache-2.0
// One element type of ref_unique.c.

static int FN(compare)(const ot__slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->outer; o++) {
        const T *x = (const T *)s->x + (o * s->n + a) * s->inner;
        const T *y = (const T *)s->x + (o * s->n + b) * s->inner;

        for (int64_t i = 0; i < s->inner; i++) {
            const NUMBER v = LOAD(x[i]), w = LOAD(y[i]);
            const bool is_greater = v > w || (IS_NAN(v) && !IS_NAN(w));
            const bool is_less = v < w || (IS_NAN(w) && !IS_NAN(v));

            if (is_greater || is_less)
                return is_greater ? 1 : -1;
        }
    }
    return 0;
}
