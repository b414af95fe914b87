// SPDX-License-Identifier: Apache-2.0
// The rows of bits.def for one integer type T of ref_bits.c; U is its unsigned twin.

#define OT_BITS(name, symbol, since, operands, y) OT__PAIRS_##operands(FN(bits_##symbol), T, y)
#define OT_BITS_TILE(symbol, y) OT__PAIRS_binary(FN(bits_##symbol), T, y)
#include "bits.def"

static const ot__pair_function FN(bits_functions)[OT__N_BITS] = {
#define OT_BITS(name, symbol, since, operands, y) [OT__BITS_##symbol] = FN(bits_##symbol),
#define OT_BITS_TILE(symbol, y) [OT__BITS_##symbol] = FN(bits_##symbol),
#include "bits.def"
};
