// SPDX-License-Identifier: Apache-2.0
// Matrices of integers of 2, 4 or 8 bits. Blocks begin at whole bytes, since they have at least 16
// elements.
#include "kernels/kernels.h"

// Number i of those packed into bytes, the first in the lowest bits.
static inline int bits_at(const uint8_t *packed, int bits, int64_t i)
{
    const int64_t bit = i * bits;

    return packed[bit >> 3] >> (bit & 7) & ((1 << bits) - 1);
}

#define TEMPLATE "kernels/quantize/ref_n_bits.tmpl.h"
#include "kernels/by_float.tmpl.h"
