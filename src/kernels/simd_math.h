// SPDX-License-Identifier: Apache-2.0
// Mathematics for f32: plain functions without branches or calls, so that a loop over them becomes
// vector code. Errors stay below 4 units in the last place with and without fused multiply-add
// (tests/unit/kernels/test_simd.c). Included by simd.h.
#ifndef OT_KERNELS_SIMD_MATH_H
#define OT_KERNELS_SIMD_MATH_H

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

// e^x = 2^n * e^r with |r| <= log(2) / 2: gives e^r, by Cephes' polynomial, and n in the low bits
// of t, which is n + 1.5 * 2^23.
OT_SIMD_INLINE float ot__vexp_rest(float x, float *t)
{
    const float round = 12582912.0F;
    float n, r, p = 1.9875691500e-4F;

    *t = x * 1.44269504F + round;
    n = *t - round;
    r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    return p * (r * r) + r + 1.0F;
}

// e^x for x <= 0; 0 where that is less than every normal number.
OT_SIMD_INLINE float ot__vexp_falling(float x)
{
    float t;
    const float p = ot__vexp_rest(x < -88.0F ? -88.0F : x, &t);

    return p * ot__bits_float((ot__float_bits(t) + 127U) << 23);
}

// e^-x for x >= 0; 0 from 104 on. Numbers below the normal ones are made of 2^24 times as much.
OT_SIMD_INLINE float ot__vdecay(float x)
{
    float t;
    const float p = ot__vexp_rest(x > 104.0F ? -104.0F : -x, &t);

    return p * ot__bits_float((ot__float_bits(t) + 151U) << 23) * 0x1p-24F;
}

// 2^shift * e^x.
OT_SIMD_INLINE float ot__vexp_shifted(float x, uint32_t shift)
{
    const float low = x < -104.0F ? -104.0F : x, bounded = low > 90.0F ? 90.0F : low;
    float t;
    const float p = ot__vexp_rest(bounded, &t);
    const uint32_t whole = ot__float_bits(t) - ot__float_bits(12582912.0F) + shift;
    // In two steps, as 2^n alone may be out of range.
    const uint32_t half = (uint32_t)((int32_t)whole >> 1), rest = whole - half;

    return p * ot__bits_float((half + 127U) << 23) * ot__bits_float((rest + 127U) << 23);
}

OT_SIMD_INLINE float ot__vexp(float x)
{
    return ot__vexp_shifted(x, 0);
}

// e^x / 2, finite where e^x is not yet.
OT_SIMD_INLINE float ot__vexp_half(float x)
{
    return ot__vexp_shifted(x, (uint32_t)-1);
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

// log(1 + x) for x >= 0: what rounding 1 + x loses comes back by the quotient.
OT_SIMD_INLINE float ot__vlog1p(float x)
{
    const float w = 1.0F + x, d = w - 1.0F;
    const float y = ot__vlog_normal(w, 0.0F) * (x / d);

    return d > 0.0F ? y : x; // NaN takes the second
}

// Near 0 x + x * p(x^2); else 1 - 1 / s(a)^8, where s is the polynomial nearest to the eighth root
// of 1 / erfc(a). Its rounding counts eightfold there, times erfc(a), at most 0.134.
OT_SIMD_INLINE float ot__verf(float x)
{
    const float a = fabsf(x), z = x * x;
    float s = 5.47965174e-4F, near = 7.45435737e-5F, far;

    s = s * a - 4.05296637e-3F;
    s = s * a + 1.80027802e-2F;
    s = s * a - 3.37114297e-2F;
    s = s * a + 7.48164803e-2F;
    s = s * a + 4.84078676e-2F;
    s = s * a + 1.59724697e-1F;
    s = s * a + 9.96376693e-1F;
    s = s * s;
    s = s * s;
    far = copysignf(1.0F - 1.0F / (s * s), x);
    near = near * z - 7.89228387e-4F;
    near = near * z + 5.17533992e-3F;
    near = near * z - 2.68472555e-2F;
    near = near * z + 1.12834365e-1F;
    near = near * z - 3.76126136e-1F;
    near = near * z + 1.28379164e-1F;
    near = near * x + x;
    return a > 1.06F ? far : near; // NaN takes the second
}

// Else 1 - 2 / (e^(2 t) + 1), with e^(2 t) = 2^n * e^(2 r) and |r| <= log(2) / 4. What log(2) / 2
// loses as one number does not show: where n is large, 1 is all that is left.
OT_SIMD_INLINE float ot__vtanh(float x)
{
    const float a = fabsf(x), t = a > 10.0F ? 10.0F : a, s = x * x; // it is 1 from 10 on
    const float round = 12582912.0F;
    const float turns = t * 2.88539008F + round, n = turns - round, r = t - n * 0.346573590F;
    float power = 2.54408852e-2F, near = 1.57394409e-2F, far;

    power = power * r + 8.94847969e-2F;
    power = power * r + 2.66670461e-1F;
    power = power * r + 6.66652734e-1F;
    power = power * r + 1.33333324F;
    power = power * r + 2.00000005F;
    power = power * r + 2.0F;
    power = power * r + 1.0F;
    far = power * ot__bits_float((ot__float_bits(turns) + 127U) << 23) + 1.0F;
    far = copysignf(1.0F - 2.0F / far, x);
    near = near * s - 5.23025580e-2F;
    near = near * s + 1.33152470e-1F;
    near = near * s - 3.33327681e-1F;
    near = near * s * x + x;
    return a >= 0.599609375F ? far : near; // NaN takes the second
}

// ---- circular functions; Cephes' polynomials ----

// Of what is larger f32 does not give the nearest multiple of pi / 2.
#define OT_VCIRCLE_LARGEST 1048576.0F

// x = n * pi / 2 + r with |r| <= pi / 4 and little more. Near multiples of pi / 2 most digits
// cancel: by fused multiply-add, which rounds once, three parts of pi / 2 are enough, the first of
// which leaves x - n * part exact; without it r is computed in double, where products of n and the
// first part are exact.
OT_SIMD_INLINE float ot__vreduce_circle(float x, uint32_t *n)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const float round = 12582912.0F;
    const float t = x * 0.636619772F + round, whole = t - round;

    *n = ot__float_bits(t);
    return fmaf(whole, 1.71512451e-15F, fmaf(whole, 4.37113883e-8F, fmaf(whole, -1.57079637F, x)));
#else
    const double round = 6755399441055744.0; // 1.5 * 2^52
    const double t = (double)x * 0.63661977236758134308 + round, whole = t - round;
    const double r = ((double)x - whole * 0x1.921fb544p+0) - whole * 0x1.0b4611a626331p-34;

    *n = ot__float_bits((float)whole + 12582912.0F);
    return (float)r;
#endif
}

OT_SIMD_INLINE float ot__vsin_near(float r)
{
    const float z = r * r;
    float p = -1.9515295891e-4F;

    p = p * z + 8.3321608736e-3F;
    p = p * z - 1.6666654611e-1F;
    return r == 0.0F ? r : p * z * r + r;
}

OT_SIMD_INLINE float ot__vcos_near(float r)
{
    const float z = r * r;
    float p = 2.443315711809948e-5F;

    p = p * z - 1.388731625493765e-3F;
    p = p * z + 4.166664568298827e-2F;
    return p * (z * z) + (1.0F - 0.5F * z);
}

OT_SIMD_INLINE float ot__vturned(float r, uint32_t n)
{
    const float y = n & 1 ? ot__vcos_near(r) : ot__vsin_near(r);

    return ot__bits_float(ot__float_bits(y) ^ (n & 2) << 30);
}

OT_SIMD_INLINE float ot__vsin(float x)
{
    uint32_t n;
    const float r = ot__vreduce_circle(x, &n);

    return ot__vturned(r, n);
}

OT_SIMD_INLINE float ot__vcos(float x)
{
    uint32_t n;
    const float r = ot__vreduce_circle(x, &n);

    return ot__vturned(r, n + 1);
}

OT_SIMD_INLINE float ot__vtan(float x)
{
    uint32_t n;
    const float r = ot__vreduce_circle(x, &n), s = ot__vsin_near(r), c = ot__vcos_near(r);

    return (n & 1 ? -c : s) / (n & 1 ? s : c);
}

// asin(s) for s = sqrt(z), 0 <= z <= 1/4.
OT_SIMD_INLINE float ot__vasin_near(float s, float z)
{
    float p = 4.2163199048e-2F;

    p = p * z + 2.4181311049e-2F;
    p = p * z + 4.5470025998e-2F;
    p = p * z + 7.4953002686e-2F;
    p = p * z + 1.6666752422e-1F;
    return p * z * s + s;
}

// asin(a) = pi / 2 - 2 * asin(sqrt((1 - a) / 2)).
OT_SIMD_INLINE float ot__vasin(float x)
{
    const float a = fabsf(x), far = 0.5F * (1.0F - a);
    const float z = a > 0.5F ? far : a * a;
    const float p = ot__vasin_near(a > 0.5F ? sqrtf(far) : a, z);

    return copysignf(a > 0.5F ? (1.57079637F - 2.0F * p) - 4.37113883e-8F : p, x);
}

OT_SIMD_INLINE float ot__vacos(float x)
{
    const float a = fabsf(x), far = 0.5F * (1.0F - a);
    const float z = a > 0.5F ? far : a * a;
    const float p = ot__vasin_near(a > 0.5F ? sqrtf(far) : a, z);
    const float near = (1.57079637F - copysignf(p, x)) - 4.37113883e-8F;
    const float behind = (3.14159274F - 2.0F * p) - 8.74227766e-8F;

    return a > 0.5F ? (x < 0.0F ? behind : 2.0F * p) : near;
}

// atan(a) = pi / 2 + atan(-1 / a) = pi / 4 + atan((a - 1) / (a + 1)).
OT_SIMD_INLINE float ot__vatan(float x)
{
    const float a = fabsf(x);
    const bool is_far = a > 2.414213562F, is_middle = a > 0.4142135624F;
    const float over = is_far ? -1.0F : is_middle ? a - 1.0F : a;
    const float under = is_far ? a : is_middle ? a + 1.0F : 1.0F;
    const float from = is_far ? 1.57079637F : is_middle ? 0.785398185F : 0.0F;
    const float rest = is_far ? -4.37113883e-8F : is_middle ? -2.18556941e-8F : 0.0F;
    const float t = over / under, z = t * t;
    float p = 8.05374449538e-2F;

    p = p * z - 1.38776856032e-1F;
    p = p * z + 1.99777106478e-1F;
    p = p * z - 3.33329491539e-1F;
    return copysignf(from + (p * z * t + t + rest), x);
}

// ---- hyperbolic functions ----

OT_SIMD_INLINE float ot__vsinh(float x)
{
    const float e = ot__vexp_half(fabsf(x)), z = x * x;
    float near = 2.03721912945e-4F;

    near = near * z + 8.33028376239e-3F;
    near = near * z + 1.66667160211e-1F;
    near = near * z * x + x;
    return fabsf(x) > 1.0F ? copysignf(e - 0.25F / e, x) : near;
}

OT_SIMD_INLINE float ot__vcosh(float x)
{
    const float e = ot__vexp_half(fabsf(x));

    return e + 0.25F / e;
}

// asinh(a) = log(1 + a + (sqrt(a^2 + 1) - 1)); of large ones log(2 * a).
OT_SIMD_INLINE float ot__vasinh(float x)
{
    const float a = fabsf(x), bounded = a > 1e4F ? 1e4F : a, s = bounded * bounded;
    const float near = ot__vlog1p(bounded + s / (1.0F + sqrtf(s + 1.0F)));
    const float far = ot__vlog(a) + 0.693147182F;

    return copysignf(a > 1e4F ? far : near, x);
}

// acosh(1 + t) = log(1 + t + sqrt(t * (t + 2))).
OT_SIMD_INLINE float ot__vacosh(float x)
{
    const float t = (x > 1e4F ? 1e4F : x) - 1.0F;
    const float near = ot__vlog1p(t + sqrtf(t * (t + 2.0F)));
    const float far = ot__vlog(x) + 0.693147182F;

    return x < 1.0F ? NAN : x > 1e4F ? far : near;
}

OT_SIMD_INLINE float ot__vatanh(float x)
{
    const float a = fabsf(x);
    const float y = a < 1.0F ? 0.5F * ot__vlog1p((a + a) / (1.0F - a)) : INFINITY;

    return a <= 1.0F ? copysignf(y, x) : NAN;
}

// ---- of two numbers ----

// To the nearest, which is even halfway.
OT_SIMD_INLINE float ot__vround(float x)
{
    const float a = fabsf(x), whole = (a + 8388608.0F) - 8388608.0F; // 2^23

    return a < 8388608.0F ? copysignf(whole, x) : x; // NaN takes the second
}

// Whether ot__vfmod() takes a and b: a quotient whose product with b is exact in double.
OT_SIMD_INLINE bool ot__vfmod_takes(float a, float b)
{
    return fabs((double)a / (double)b) < 268435456.0 && fabsf(b) <= 3.40282347e38F; // 2^28
}

// a less the whole multiple of b that is nearest, and that of the sign of a.
OT_SIMD_INLINE float ot__vfmod(float a, float b)
{
    const double round = 6755399441055744.0; // 1.5 * 2^52
    const double whole = ((double)a / (double)b + round) - round;
    const double rest = (double)a - whole * (double)b, r = a < 0.0F ? -rest : rest;

    return copysignf((float)(r < 0.0 ? r + fabs((double)b) : r), a);
}

// b * log2(a) in double: with m in sqrt(1/2) .. sqrt(2), log(m) = 2 * atanh((m - 1) / (m + 1)).
OT_SIMD_INLINE double ot__vpow_exponent(float a, float b)
{
    const uint32_t shifted = ot__float_bits(a) - 0x3F3504F3U;
    const float n = (float)((int32_t)shifted >> 23);
    const double m = (double)ot__bits_float((shifted & 0x007FFFFFU) + 0x3F3504F3U);
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 2.8853900817779268 / 11;

    p = p * z + 2.8853900817779268 / 9;
    p = p * z + 2.8853900817779268 / 7;
    p = p * z + 2.8853900817779268 / 5;
    p = p * z + 2.8853900817779268 / 3;
    p = p * z + 2.8853900817779268;
    return ((double)n + p * s) * (double)b;
}

// Whether ot__vpow() takes a and b: a positive normal number, and a result that is one.
OT_SIMD_INLINE bool ot__vpow_takes(float a, float b)
{
    return a >= 1.17549435e-38F && a <= 3.40282347e38F && fabs(ot__vpow_exponent(a, b)) < 126.0;
}

OT_SIMD_INLINE float ot__vpow(float a, float b)
{
    const double round = 6755399441055744.0;
    const double t = ot__vpow_exponent(a, b), whole = (t + round) - round;
    const uint32_t n =
        ot__float_bits((float)whole + 12582912.0F) - ot__float_bits(12582912.0F) + 127U;
    const float f = (float)(t - whole);
    float p = 1.535336188319500e-4F;

    p = p * f + 1.339887440266574e-3F;
    p = p * f + 9.618437357674640e-3F;
    p = p * f + 5.550332471162809e-2F;
    p = p * f + 2.402264791363012e-1F;
    p = p * f + 6.931472028550421e-1F;
    return (p * f + 1.0F) * ot__bits_float(n << 23);
}

#endif
