// SPDX-License-Identifier: Apache-2.0
// Loops around the formulas of compare.def and bits.def: `function` gives y[k], of type Y, for a[k]
// and b[k], or a[k] alone. Elements are of type T; LOAD brings one to a NUMBER, which C can compute
// with.
#ifndef OT_KERNELS_PAIRS_H
#define OT_KERNELS_PAIRS_H

#define OT__PAIRS_binary(function, Y, formula)                                                     \
    static void function(void *to, const void *x0, const void *x1, int64_t n)                      \
    {                                                                                              \
        const T *as = x0, *bs = x1;                                                                \
        Y *y = to;                                                                                 \
                                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const NUMBER a = LOAD(as[k]), b = LOAD(bs[k]);                                         \
                                                                                                   \
            y[k] = (Y)(formula);                                                                   \
        }                                                                                          \
    }
#define OT__PAIRS_unary(function, Y, formula)                                                      \
    static void function(void *to, const void *x0, const void *x1, int64_t n)                      \
    {                                                                                              \
        const T *as = x0;                                                                          \
        Y *y = to;                                                                                 \
                                                                                                   \
        (void)x1;                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const NUMBER a = LOAD(as[k]);                                                          \
                                                                                                   \
            y[k] = (Y)(formula);                                                                   \
        }                                                                                          \
    }

#endif
