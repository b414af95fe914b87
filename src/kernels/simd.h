// SPDX-License-Identifier: Apache-2.0
// Vector mathematics for f32: plain functions the compiler turns into vector code inside loops.
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

// a > b ? a : b of each lane: b where either is NaN.
OT_SIMD_INLINE ot__vector ot__vector_max(ot__vector a, ot__vector b)
{
    const ot__vector_bits greater = (ot__vector_bits)(a > b);

    return (ot__vector)(((ot__vector_bits)a & greater) | ((ot__vector_bits)b & ~greater));
}

// Half a register of floats, and a register of doubles.
typedef float ot__vector_half
    __attribute__((vector_size(2 * OT_VECTOR_LANES), aligned(4), may_alias));
typedef double ot__vector_wide
    __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(8), may_alias));

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

// y[c][r] = x[r][c] for four rows and columns; rows of x and of y are so many floats apart.
OT_SIMD_INLINE void ot__transpose4(float *y, int64_t y_row, const float *x, int64_t x_row)
{
    const ot__vector4 r0 = *(const ot__vector4 *)(const void *)x;
    const ot__vector4 r1 = *(const ot__vector4 *)(const void *)(x + x_row);
    const ot__vector4 r2 = *(const ot__vector4 *)(const void *)(x + 2 * x_row);
    const ot__vector4 r3 = *(const ot__vector4 *)(const void *)(x + 3 * x_row);
    const ot__vector4 a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    const ot__vector4 b = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const ot__vector4 c = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    const ot__vector4 d = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);

    *(ot__vector4 *)(void *)y = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    *(ot__vector4 *)(void *)(y + y_row) = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    *(ot__vector4 *)(void *)(y + 2 * y_row) = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    *(ot__vector4 *)(void *)(y + 3 * y_row) = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// Stands before a loop of constant length over an array that is to stay in registers.
#if defined(__clang__)
#define OT_SIMD_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define OT_SIMD_UNROLL _Pragma("GCC unroll 16")
#else
#define OT_SIMD_UNROLL
#endif

// ---- mathematics: without branches or calls, so that a loop over them becomes vector code ----
//
// Errors stay below 4 units in the last place with and without fused multiply-add
// (tests/unit/kernels/test_simd.c).

static inline uint32_t ot__float_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float ot__bits_float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

// e^x = 2^n * e^r with |r| <= log(2) / 2; Cephes' polynomial.
OT_SIMD_INLINE float ot__vexp(float x)
{
    const float round = 12582912.0F; // 1.5 * 2^23: adding it leaves an integer in the low bits
    const float low = x < -104.0F ? -104.0F : x, bounded = low > 89.0F ? 89.0F : low;
    const float t = bounded * 1.44269504F + round, n = t - round;
    const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
    const uint32_t whole = ot__float_bits(t) - ot__float_bits(round);
    // In two steps, as 2^n alone may be out of range.
    const uint32_t half = (uint32_t)((int32_t)whole >> 1), rest = whole - half;
    float p = 1.9875691500e-4F;

    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    return p * ot__bits_float((half + 127U) << 23) * ot__bits_float((rest + 127U) << 23);
}

// e^x - 1 = 2^n * ((e^r - 1) + 1 - 2^-n), without the rounding that adding 1 would cost near 0.
OT_SIMD_INLINE float ot__vexpm1(float x)
{
    const float round = 12582912.0F;
    const float low = x < -30.0F ? -30.0F : x, bounded = low > 89.0F ? 89.0F : low;
    const float t = bounded * 1.44269504F + round, n = t - round;
    const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
    const uint32_t whole = ot__float_bits(t) - ot__float_bits(round);
    const float half = ot__bits_float((whole + 126U) << 23); // 2^n / 2, as 2^n may be out of range
    float p = 1.9875691500e-4F;

    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r;
    return (half * p + (half - 0.5F)) * 2.0F;
}

// log of a positive normal number times 2^shift.  x = 2^n * m with m in sqrt(1/2) .. sqrt(2);
// Cephes' polynomial.
OT_SIMD_INLINE float ot__vlog_normal(float x, float shift)
{
    // So that m is taken from below 1 where that is nearer.
    const uint32_t shifted = ot__float_bits(x) - 0x3F3504F3U;
    const float n = (float)((int32_t)shifted >> 23) + shift;
    const float m = ot__bits_float((shifted & 0x007FFFFFU) + 0x3F3504F3U) - 1.0F, s = m * m;
    float p = 7.0376836292e-2F, y;

    p = p * m - 1.1514610310e-1F;
    p = p * m + 1.1676998740e-1F;
    p = p * m - 1.2420140846e-1F;
    p = p * m + 1.4249322787e-1F;
    p = p * m - 1.6668057665e-1F;
    p = p * m + 2.0000714765e-1F;
    p = p * m - 2.4999993993e-1F;
    p = p * m + 3.3333331174e-1F;
    y = p * m * s - 2.12194440e-4F * n - 0.5F * s;
    return (m + y) + n * 0.693359375F;
}

OT_SIMD_INLINE float ot__vlog(float x)
{
    const bool is_tiny = x < 1.17549435e-38F;
    const float normal = is_tiny ? x * 33554432.0F : x; // 2^25
    float y = ot__vlog_normal(normal, is_tiny ? -25.0F : 0.0F);

    y = x > 3.40282347e38F ? x : y; // infinity
    y = x == 0.0F ? -INFINITY : y;
    return x < 0.0F || x != x ? NAN : y;
}

// log(1 + x) for 0 <= x <= 1: what rounding 1 + x loses comes back by the quotient.
OT_SIMD_INLINE float ot__vlog1p(float x)
{
    const float w = 1.0F + x, d = w - 1.0F;
    const float y = ot__vlog_normal(w, 0.0F) * (x / d);

    return d > 0.0F ? y : x; // NaN takes the second
}

OT_SIMD_INLINE float ot__verf(float x)
{
    const float a = fabsf(x), t = a > 9.0F ? 9.0F : a, s = t * t;
    float far = -1.72853470e-5F * t + 3.83197126e-4F, near = -5.96761703e-4F;

    far = far * s + (-3.88396438e-3F * t + 2.42546219e-2F);
    far = far * t - 1.06777877e-1F;
    far = far * t - 6.34846687e-1F;
    far = far * t - 1.28717512e-1F;
    far = far * t - t;
    far = copysignf(1.0F - ot__vexp(far), x);
    near = near * s + 4.99119423e-3F;
    near = near * s - 2.67681349e-2F;
    near = near * s + 1.12819925e-1F;
    near = near * s - 3.76125336e-1F;
    near = near * s + 1.28379166e-1F;
    near = near * x + x;
    return a > 0.927734375F ? far : near; // NaN takes the second
}

OT_SIMD_INLINE float ot__vtanh(float x)
{
    const float a = fabsf(x), s = x * x;
    const float far = copysignf(1.0F - 2.0F / (ot__vexp(a + a) + 1.0F), x);
    float near = 1.57394409e-2F;

    near = near * s - 5.23025580e-2F;
    near = near * s + 1.33152470e-1F;
    near = near * s - 3.33327681e-1F;
    near = near * s * x + x;
    return a >= 0.599609375F ? far : near; // NaN takes the second
}

#endif
