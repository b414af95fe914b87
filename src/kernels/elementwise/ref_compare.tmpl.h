// SPDX-License-Identifier: Apache-2.0
// The rows of compare.def for one element type T of ref_compare.c; LOAD brings an element to a
// NUMBER, which C can compare.

#define OT_COMPARISON(name, symbol, since, age, operands, types, infer, flags, y)                  \
    OT__PAIRS_##operands(FN(compare_##symbol), uint8_t, y)
#define OT_FLOAT_TEST(symbol, y) IF_FLOAT(OT__PAIRS_unary(FN(compare_##symbol), uint8_t, y))
#include "compare.def"

static const ot__pair_function FN(compare_functions)[OT__N_COMPARISONS] = {
#define OT_COMPARISON(name, symbol, since, age, operands, types, infer, flags, y)                  \
    [OT__COMPARE_##symbol] = FN(compare_##symbol),
#define OT_FLOAT_TEST(symbol, y) IF_FLOAT([OT__COMPARE_##symbol] = FN(compare_##symbol), )
#include "compare.def"
};
