// SPDX-License-Identifier: Apache-2.0
// The rows of compare.def for one element type T of ref_compare.c; LOAD brings an element to a type
// C can compare.

#define COMPARE_2(symbol, formula)                                                                 \
    static void FN(compare_##symbol)(uint8_t * y, const void *x0, const void *x1, int64_t n)       \
    {                                                                                              \
        const T *as = x0, *bs = x1;                                                                \
                                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const NUMBER a = LOAD(as[k]), b = LOAD(bs[k]);                                         \
                                                                                                   \
            y[k] = formula;                                                                        \
        }                                                                                          \
    }
#define COMPARE_1(symbol, formula)                                                                 \
    static void FN(compare_##symbol)(uint8_t * y, const void *x0, const void *x1, int64_t n)       \
    {                                                                                              \
        const T *as = x0;                                                                          \
                                                                                                   \
        (void)x1;                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const NUMBER a = LOAD(as[k]);                                                          \
                                                                                                   \
            y[k] = formula;                                                                        \
        }                                                                                          \
    }
#define COMPARE_binary COMPARE_2
#define COMPARE_unary COMPARE_1
#define OT_COMPARISON(name, symbol, since, age, operands, types, infer, flags, y)                  \
    COMPARE_##operands(symbol, y)
#define OT_FLOAT_TEST(symbol, y) IF_FLOAT(COMPARE_1(symbol, y))
#include "compare.def"

static const ot__compare_function FN(compare_functions)[OT__N_COMPARISONS] = {
#define OT_COMPARISON(name, symbol, since, age, operands, types, infer, flags, y)                  \
    [OT__COMPARE_##symbol] = FN(compare_##symbol),
#define OT_FLOAT_TEST(symbol, y) IF_FLOAT([OT__COMPARE_##symbol] = FN(compare_##symbol), )
#include "compare.def"
};

#undef COMPARE_1
#undef COMPARE_2
#undef COMPARE_binary
#undef COMPARE_unary
#undef T
#undef FN
#undef LOAD
#undef NUMBER
#undef IF_FLOAT
