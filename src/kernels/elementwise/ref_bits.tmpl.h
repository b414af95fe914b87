// SPDX-License-Identifier: Apache-2.0
// The rows of bits.def for one integer type T of ref_bits.c; U is its unsigned twin.

#define WIDTH (8 * sizeof(T))
#define BITS_binary(symbol, formula)                                                               \
    static void FN(bits_##symbol)(void *to, const void *x0, const void *x1, int64_t n)             \
    {                                                                                              \
        const T *as = x0, *bs = x1;                                                                \
        T *y = to;                                                                                 \
                                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const T a = as[k], b = bs[k];                                                          \
                                                                                                   \
            y[k] = (T)(formula);                                                                   \
        }                                                                                          \
    }
#define BITS_unary(symbol, formula)                                                                \
    static void FN(bits_##symbol)(void *to, const void *x0, const void *x1, int64_t n)             \
    {                                                                                              \
        const T *as = x0;                                                                          \
        T *y = to;                                                                                 \
                                                                                                   \
        (void)x1;                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const T a = as[k];                                                                     \
                                                                                                   \
            y[k] = (T)(formula);                                                                   \
        }                                                                                          \
    }
#define OT_BITS(name, symbol, since, operands, y) BITS_##operands(symbol, y)
#define OT_BITS_TILE(symbol, y) BITS_binary(symbol, y)
#include "bits.def"

static const ot__bits_function FN(bits_functions)[OT__N_BITS] = {
#define OT_BITS(name, symbol, since, operands, y) [OT__BITS_##symbol] = FN(bits_##symbol),
#define OT_BITS_TILE(symbol, y) [OT__BITS_##symbol] = FN(bits_##symbol),
#include "bits.def"
};

#undef BITS_binary
#undef BITS_unary
#undef WIDTH
#undef T
#undef U
#undef FN
