// SPDX-License-Identifier: Apache-2.0
// What simd_fourier.c does to registers: complex numbers into their parts and back, squares of
// lines and points turned over, transforms of as many points as there are registers.
#ifndef OT_KERNELS_SIGNAL_SIMD_FOURIER_LANES_H
#define OT_KERNELS_SIGNAL_SIMD_FOURIER_LANES_H

#include "kernels/simd.h"

// Which elements of two vectors become one. UNPACK, PAIR: in each four elements, one or two of both
// vectors in turns; FOUR: every other four.
#if OT_VECTOR_LANES == 16
#define UNPACK_LOW 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define UNPACK_HIGH 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define PAIR_LOW 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define PAIR_HIGH 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define FOUR_EVEN 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define FOUR_ODD 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#define PARTS_RE 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define PARTS_IM 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define ZIP_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define REVERSED 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#elif OT_VECTOR_LANES == 8
#define UNPACK_LOW 0, 8, 1, 9, 4, 12, 5, 13
#define UNPACK_HIGH 2, 10, 3, 11, 6, 14, 7, 15
#define PAIR_LOW 0, 1, 8, 9, 4, 5, 12, 13
#define PAIR_HIGH 2, 3, 10, 11, 6, 7, 14, 15
#define FOUR_EVEN 0, 1, 2, 3, 8, 9, 10, 11
#define FOUR_ODD 4, 5, 6, 7, 12, 13, 14, 15
#define REVERSED 7, 6, 5, 4, 3, 2, 1, 0
#else
#define UNPACK_LOW 0, 4, 1, 5
#define UNPACK_HIGH 2, 6, 3, 7
#define PAIR_LOW 0, 1, 4, 5
#define PAIR_HIGH 2, 3, 6, 7
#define REVERSED 3, 2, 1, 0
#endif

OT_SIMD_INLINE ot__vector reverse_lanes(ot__vector v)
{
    return __builtin_shufflevector(v, v, REVERSED);
}

// 2 * OT_VECTOR_LANES floats: real and imaginary parts of complex numbers.
OT_SIMD_INLINE void load_parts(ot__vector *re, ot__vector *im, const float *x)
{
    const ot__vector a = ot__vector_load(x), b = ot__vector_load(x + OT_VECTOR_LANES);

#if OT_VECTOR_LANES == 16
    *re = __builtin_shufflevector(a, b, PARTS_RE);
    *im = __builtin_shufflevector(a, b, PARTS_IM);
#elif OT_VECTOR_LANES == 8
    const ot__vector low = __builtin_shufflevector(a, b, FOUR_EVEN);
    const ot__vector high = __builtin_shufflevector(a, b, FOUR_ODD);

    *re = __builtin_shufflevector(low, high, 0, 2, 8, 10, 4, 6, 12, 14);
    *im = __builtin_shufflevector(low, high, 1, 3, 9, 11, 5, 7, 13, 15);
#else
    *re = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    *im = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}

OT_SIMD_INLINE void store_parts(float *y, ot__vector re, ot__vector im)
{
#if OT_VECTOR_LANES == 16
    ot__vector_store(y, __builtin_shufflevector(re, im, ZIP_LOW));
    ot__vector_store(y + OT_VECTOR_LANES, __builtin_shufflevector(re, im, ZIP_HIGH));
#elif OT_VECTOR_LANES == 8
    const ot__vector low = __builtin_shufflevector(re, im, UNPACK_LOW);
    const ot__vector high = __builtin_shufflevector(re, im, UNPACK_HIGH);

    ot__vector_store(y, __builtin_shufflevector(low, high, FOUR_EVEN));
    ot__vector_store(y + OT_VECTOR_LANES, __builtin_shufflevector(low, high, FOUR_ODD));
#else
    ot__vector_store(y, __builtin_shufflevector(re, im, UNPACK_LOW));
    ot__vector_store(y + OT_VECTOR_LANES, __builtin_shufflevector(re, im, UNPACK_HIGH));
#endif
}

// Lane i of v[k] and lane k of v[i] change places.
OT_SIMD_INLINE void transpose_lanes(ot__vector *v)
{
    ot__vector fours[OT_VECTOR_LANES]; // [k % 4 * (lanes / 4) + row / 4]
    enum { FOURS = OT_VECTOR_LANES / 4 };

    OT_SIMD_UNROLL
    for (int g = 0; g < FOURS; g++) {
        const ot__vector *r = v + 4 * g;
        const ot__vector a = __builtin_shufflevector(r[0], r[1], UNPACK_LOW);
        const ot__vector b = __builtin_shufflevector(r[0], r[1], UNPACK_HIGH);
        const ot__vector c = __builtin_shufflevector(r[2], r[3], UNPACK_LOW);
        const ot__vector d = __builtin_shufflevector(r[2], r[3], UNPACK_HIGH);

        fours[0 * FOURS + g] = __builtin_shufflevector(a, c, PAIR_LOW);
        fours[1 * FOURS + g] = __builtin_shufflevector(a, c, PAIR_HIGH);
        fours[2 * FOURS + g] = __builtin_shufflevector(b, d, PAIR_LOW);
        fours[3 * FOURS + g] = __builtin_shufflevector(b, d, PAIR_HIGH);
    }
    OT_SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const ot__vector *t = fours + i * FOURS;
#if OT_VECTOR_LANES == 16
        const ot__vector even = __builtin_shufflevector(t[0], t[1], FOUR_EVEN);
        const ot__vector odd = __builtin_shufflevector(t[0], t[1], FOUR_ODD);
        const ot__vector second_even = __builtin_shufflevector(t[2], t[3], FOUR_EVEN);
        const ot__vector second_odd = __builtin_shufflevector(t[2], t[3], FOUR_ODD);

        v[i] = __builtin_shufflevector(even, second_even, FOUR_EVEN);
        v[i + 4] = __builtin_shufflevector(odd, second_odd, FOUR_EVEN);
        v[i + 8] = __builtin_shufflevector(even, second_even, FOUR_ODD);
        v[i + 12] = __builtin_shufflevector(odd, second_odd, FOUR_ODD);
#elif OT_VECTOR_LANES == 8
        v[i] = __builtin_shufflevector(t[0], t[1], FOUR_EVEN);
        v[i + 4] = __builtin_shufflevector(t[0], t[1], FOUR_ODD);
#else
        v[i] = t[0];
#endif
    }
}

OT_SIMD_INLINE void multiply_by(ot__vector *re, ot__vector *im, ot__vector wr, ot__vector wi)
{
    const ot__vector r = *re * wr - *im * wi;

    *im = *re * wi + *im * wr;
    *re = r;
}

// ---- transforms of few points, in place: number k of the result is x[k] ----

OT_SIMD_INLINE void transform_2(ot__vector *re, ot__vector *im)
{
    const ot__vector r = re[0] - re[1], i = im[0] - im[1];

    re[0] += re[1];
    im[0] += im[1];
    re[1] = r;
    im[1] = i;
}

OT_SIMD_INLINE void transform_4(ot__vector *re, ot__vector *im)
{
    const ot__vector even_r = re[0] + re[2], even_i = im[0] + im[2];
    const ot__vector apart_r = re[0] - re[2], apart_i = im[0] - im[2];
    const ot__vector odd_r = re[1] + re[3], odd_i = im[1] + im[3];
    const ot__vector turned_r = im[1] - im[3], turned_i = re[3] - re[1]; // by -i

    re[0] = even_r + odd_r;
    im[0] = even_i + odd_i;
    re[1] = apart_r + turned_r;
    im[1] = apart_i + turned_i;
    re[2] = even_r - odd_r;
    im[2] = even_i - odd_i;
    re[3] = apart_r - turned_r;
    im[3] = apart_i - turned_i;
}

OT_SIMD_INLINE void transform_8(ot__vector *re, ot__vector *im)
{
    static const float half_root = 0.707106781186547524F;
    ot__vector even_r[4], even_i[4], odd_r[4], odd_i[4], kept;

    OT_SIMD_UNROLL
    for (int k = 0; k < 4; k++) {
        even_r[k] = re[2 * k];
        even_i[k] = im[2 * k];
        odd_r[k] = re[2 * k + 1];
        odd_i[k] = im[2 * k + 1];
    }
    transform_4(even_r, even_i);
    transform_4(odd_r, odd_i);
    kept = (odd_r[1] + odd_i[1]) * half_root;
    odd_i[1] = (odd_i[1] - odd_r[1]) * half_root;
    odd_r[1] = kept;
    kept = odd_i[2];
    odd_i[2] = -odd_r[2];
    odd_r[2] = kept;
    kept = (odd_i[3] - odd_r[3]) * half_root;
    odd_i[3] = (odd_r[3] + odd_i[3]) * -half_root;
    odd_r[3] = kept;
    OT_SIMD_UNROLL
    for (int k = 0; k < 4; k++) {
        re[k] = even_r[k] + odd_r[k];
        im[k] = even_i[k] + odd_i[k];
        re[k + 4] = even_r[k] - odd_r[k];
        im[k + 4] = even_i[k] - odd_i[k];
    }
}

OT_SIMD_INLINE void transform_16(ot__vector *re, ot__vector *im)
{
    // cos and sin of 2 pi k / 16, where k is a product of two numbers below 4
    static const float cos_of[] = {1,
                                   0.923879532511286756F,
                                   0.707106781186547524F,
                                   0.382683432365089772F,
                                   0,
                                   0,
                                   -0.707106781186547524F,
                                   0,
                                   0,
                                   -0.923879532511286756F};
    static const float sin_of[] = {0,
                                   0.382683432365089772F,
                                   0.707106781186547524F,
                                   0.923879532511286756F,
                                   1,
                                   0,
                                   0.707106781186547524F,
                                   0,
                                   0,
                                   -0.382683432365089772F};
    ot__vector r[4][4], i[4][4]; // [k % 4 of the result][k % 4 of x]

    OT_SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
        ot__vector column_r[4] = {re[j], re[j + 4], re[j + 8], re[j + 12]};
        ot__vector column_i[4] = {im[j], im[j + 4], im[j + 8], im[j + 12]};

        transform_4(column_r, column_i);
        r[0][j] = column_r[0];
        i[0][j] = column_i[0];
        OT_SIMD_UNROLL
        for (int q = 1; q < 4; q++) {
            if (j > 0)
                multiply_by(&column_r[q], &column_i[q], ot__vector_of(cos_of[j * q]),
                            ot__vector_of(-sin_of[j * q]));
            r[q][j] = column_r[q];
            i[q][j] = column_i[q];
        }
    }
    OT_SIMD_UNROLL
    for (int q = 0; q < 4; q++) {
        transform_4(r[q], i[q]);
        OT_SIMD_UNROLL
        for (int k = 0; k < 4; k++) {
            re[q + 4 * k] = r[q][k];
            im[q + 4 * k] = i[q][k];
        }
    }
}

// n is a constant: 2, 4, 8 or 16.
OT_SIMD_INLINE void transform_points(ot__vector *re, ot__vector *im, int n)
{
    if (n == 2)
        transform_2(re, im);
    else if (n == 4)
        transform_4(re, im);
    else if (n == 8)
        transform_8(re, im);
    else
        transform_16(re, im);
}

#endif
