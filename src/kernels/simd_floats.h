// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 to f32 and back, rounding to nearest even: without branches, so that loops become
// vector code. The same bits as ot__f32_to_f16() and its like.
#ifndef OT_KERNELS_SIMD_FLOATS_H
#define OT_KERNELS_SIMD_FLOATS_H

#include "kernels/simd.h"

OT_SIMD_INLINE float ot__vwiden_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fffU;
    const float number = ot__bits_float(rest << 13) * 0x1p112F; // 15 is the bias there, here 127
    const uint32_t special = 0x7f800000U | (rest & 0x3ffU) << 13;

    return ot__bits_float(sign | (rest >= 0x7c00U ? special : ot__float_bits(number)));
}

OT_SIMD_INLINE uint16_t ot__vnarrow_f16(float x)
{
    const uint32_t bits = ot__float_bits(x), sign = bits & 0x80000000U, rest = bits ^ sign;
    const uint32_t half = ot__float_bits(0.5F);
    // The addition rounds at bit 2^-24; of what is not small it is not taken.
    const uint32_t bounded = rest < 0x38800000U ? rest : 0;
    const uint32_t small = ot__float_bits(ot__bits_float(bounded) + 0.5F) - half;
    const uint32_t normal = (rest - 0x38000000U + 0xfffU + (rest >> 13 & 1)) >> 13;
    uint32_t y = rest < 0x38800000U ? small : normal;

    y = rest >= 0x47800000U ? 0x7c00U : y; // 65536
    y = rest > 0x7f800000U ? 0x7e00U : y;
    return (uint16_t)(sign >> 16 | y);
}

OT_SIMD_INLINE float ot__vwiden_bf16(uint16_t half)
{
    return ot__bits_float((uint32_t)half << 16);
}

OT_SIMD_INLINE uint16_t ot__vnarrow_bf16(float x)
{
    const uint32_t bits = ot__float_bits(x), rounded = bits + 0x7fffU + (bits >> 16 & 1);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;

    return (uint16_t)(is_nan ? bits >> 16 | 0x40U : rounded >> 16);
}

#endif
