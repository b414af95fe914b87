// SPDX-License-Identifier: Apache-2.0
// Packed types: elements below 8 bits, which share bytes, the first in the lowest bits.
#include "tensor/tensor.h"

enum { BYTE = 8 };

void ot__unpack_bits(uint8_t *to, const void *from, ot_dtype packed, int64_t first, int64_t n)
{
    const int64_t bits = ot__dtype_bits(packed);
    const unsigned mask = (1U << bits) - 1;
    const uint8_t *data = from;

    for (int64_t i = 0; i < n; i++) {
        const int64_t bit = (first + i) * bits, byte = bit / BYTE, shift = bit % BYTE;
        const unsigned above = shift + bits > BYTE ? data[byte + 1] : 0;

        to[i] = (uint8_t)((data[byte] | above << BYTE) >> shift & mask);
    }
}

void ot__pack_bits(void *to, ot_dtype packed, int64_t first, const uint8_t *from, int64_t n)
{
    const int64_t bits = ot__dtype_bits(packed);
    const unsigned mask = (1U << bits) - 1;
    uint8_t *data = to;

    for (int64_t i = 0; i < n; i++) {
        const int64_t bit = (first + i) * bits, byte = bit / BYTE, shift = bit % BYTE;
        const unsigned below = data[byte] & ((1U << shift) - 1);
        const unsigned both = below | (from[i] & mask) << shift;

        data[byte] = (uint8_t)both;
        if (shift + bits > BYTE)
            data[byte + 1] = (uint8_t)(both >> BYTE);
    }
}
