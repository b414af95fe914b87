// SPDX-License-Identifier: Apache-2.0
// Vector code: loops that the compiler turns into it, and what a register holds.
#ifndef OT_KERNELS_SIMD_H
#define OT_KERNELS_SIMD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

// ---- loops ----

// A call left in a loop would keep it scalar, however long the function.
#if defined(__GNUC__)
#define OT_SIMD_INLINE static inline __attribute__((always_inline))
#else
#define OT_SIMD_INLINE static inline
#endif

// Stands before a loop whose iterations do not depend on each other although the compiler cannot
// know it.
#if defined(__clang__)
#define OT_SIMD_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define OT_SIMD_LOOP _Pragma("GCC ivdep")
#else
#define OT_SIMD_LOOP
#endif

// Stands before OT_SIMD_LOOP where the loop is short and of constant length: unrolled at once it
// would stay scalar.
#if defined(__clang__)
#define OT_SIMD_ROLLED _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__)
#define OT_SIMD_ROLLED _Pragma("GCC unroll 1")
#else
#define OT_SIMD_ROLLED
#endif

// ---- vectors: what a register holds, for the loops that keep their results in registers ----

#ifndef OT_ISA_LEVEL
#define OT_ISA_LEVEL 0 // OT__ISA_BASE
#endif
#if OT_ISA_LEVEL == 2
#define OT_VECTOR_LANES 16
#elif OT_ISA_LEVEL == 1
#define OT_VECTOR_LANES 8
#else
#define OT_VECTOR_LANES 4
#endif

// At any address that a float may have.
typedef float ot__vector __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(4), may_alias));
typedef float ot__vector4 __attribute__((vector_size(16), aligned(4), may_alias));

OT_SIMD_INLINE ot__vector ot__vector_load(const float *x)
{
    return *(const ot__vector *)(const void *)x;
}

OT_SIMD_INLINE void ot__vector_store(float *y, ot__vector v)
{
    *(ot__vector *)(void *)y = v;
}

// The same of integers that are a float's bits.
typedef uint32_t ot__vector_bits
    __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(4), may_alias));

OT_SIMD_INLINE ot__vector ot__vector_of(float x)
{
    return (ot__vector){0} + x;
}

// a > b ? a : b of each lane: b where either is NaN. x86 does that at once, which GCC does not see.
OT_SIMD_INLINE ot__vector ot__vector_max(ot__vector a, ot__vector b)
{
#if OT_ISA_LEVEL == 2
    return (ot__vector)_mm512_max_ps((__m512)a, (__m512)b);
#elif OT_ISA_LEVEL == 1
    return (ot__vector)_mm256_max_ps((__m256)a, (__m256)b);
#else
    const ot__vector_bits greater = (ot__vector_bits)(a > b);

    return (ot__vector)(((ot__vector_bits)a & greater) | ((ot__vector_bits)b & ~greater));
#endif
}

// Half a register of floats, and a register of doubles.
typedef float ot__vector_half
    __attribute__((vector_size(2 * OT_VECTOR_LANES), aligned(4), may_alias));
typedef double ot__vector_wide
    __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(8), may_alias));

// a > b ? a : b of each lane: b where either is NaN.
OT_SIMD_INLINE ot__vector_wide ot__vector_wide_max(ot__vector_wide a, ot__vector_wide b)
{
#if OT_ISA_LEVEL == 2
    return (ot__vector_wide)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif OT_ISA_LEVEL == 1
    return (ot__vector_wide)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
    typedef uint64_t wide_bits __attribute__((vector_size(16), aligned(8), may_alias));
    const wide_bits greater = (wide_bits)(a > b);

    return (ot__vector_wide)(((wide_bits)a & greater) | ((wide_bits)b & ~greater));
#endif
}

OT_SIMD_INLINE ot__vector_wide ot__vector_widen(const float *x)
{
#if OT_ISA_LEVEL == 2 // which GCC does in two halves
    return (ot__vector_wide)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#else
    return __builtin_convertvector(*(const ot__vector_half *)(const void *)x, ot__vector_wide);
#endif
}

// A register of f16 to f32 and back where the processor does it: as ot__f32_to_f16() and its like,
// but that NaNs which signal become quiet.
#if OT_ISA_LEVEL == 2 && defined(__F16C__)
#define OT_VECTOR_F16 1
OT_SIMD_INLINE ot__vector ot__vector_of_f16(const uint16_t *x)
{
    return (ot__vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)x));
}

OT_SIMD_INLINE void ot__vector_to_f16(uint16_t *y, ot__vector v)
{
    const __m512 x = (__m512)v;
    const __m256i half = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256i sign = _mm256_and_si256(half, _mm256_set1_epi16(INT16_MIN));
    const __m256i nan = _mm256_or_si256(sign, _mm256_set1_epi16(0x7e00));

    _mm256_storeu_si256((__m256i *)(void *)y,
                        _mm256_mask_blend_epi16(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), half, nan));
}
#elif OT_ISA_LEVEL == 1 && defined(__F16C__)
#define OT_VECTOR_F16 1
OT_SIMD_INLINE ot__vector ot__vector_of_f16(const uint16_t *x)
{
    return (ot__vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)x));
}

OT_SIMD_INLINE void ot__vector_to_f16(uint16_t *y, ot__vector v)
{
    const __m256 x = (__m256)v;
    const __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m128i sign = _mm_and_si128(half, _mm_set1_epi16(INT16_MIN));
    const __m128i nan = _mm_or_si128(sign, _mm_set1_epi16(0x7e00));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m128i mask =
        _mm_packs_epi32(_mm256_castsi256_si128(is_nan), _mm256_extracti128_si256(is_nan, 1));

    _mm_storeu_si128((__m128i *)(void *)y, _mm_blendv_epi8(half, nan, mask));
}
#else
#define OT_VECTOR_F16 0
#endif

// Stands before a loop of constant length over an array that is to stay in registers.
#if defined(__clang__)
#define OT_SIMD_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define OT_SIMD_UNROLL _Pragma("GCC unroll 16")
#else
#define OT_SIMD_UNROLL
#endif

// Keeps a vector that is used several times in a register: as an operand in memory it would be
// loaded each time.
#if defined(__x86_64__) && defined(__GNUC__)
#define OT_SIMD_KEEP(v) __asm__("" : "+v"(v))
#else
#define OT_SIMD_KEEP(v) ((void)0)
#endif

#include "kernels/simd_math.h"

// Localities with which __builtin_prefetch brings lines into a cache.
enum { OT_INTO_FIRST_CACHE = 3, OT_INTO_SECOND_CACHE = 2 };

#endif
