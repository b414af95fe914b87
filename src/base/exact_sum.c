// SPDX-License-Identifier: Apache-2.0
// Sums of squares without rounding: the same bits for any order, and for any cut into parts.
#include <math.h>
#include <string.h>

#include "base/base.h"

enum {
    DIGIT_BITS = 32,
    MANTISSA_BITS = 23,
    EXPONENTS = 1 << 8,
    NOT_FINITE = EXPONENTS - 1, // of infinities and NaN
    LOWEST_BIT = -298,          // the square of the least subnormal number is 2^-298
    CHUNK = 1 << 16,            // squares below 2^48 that a bin of 64 bits can take
};

// Adds `value` times 2^(LOWEST_BIT + place).
static void add_at(ot__exact_sum *sum, uint64_t value, int place)
{
    const int first = place / DIGIT_BITS, shift = place % DIGIT_BITS;
    const uint64_t low = (value & UINT32_MAX) << shift;
    const uint64_t high = (value >> DIGIT_BITS) << shift;

    sum->digits[first] += low & UINT32_MAX;
    sum->digits[first + 1] += (low >> DIGIT_BITS) + (high & UINT32_MAX);
    sum->digits[first + 2] += high >> DIGIT_BITS;
}

static void carry_digits(ot__exact_sum *sum)
{
    for (int i = 0; i + 1 < OT_EXACT_DIGITS; i++) {
        sum->digits[i + 1] += sum->digits[i] >> DIGIT_BITS;
        sum->digits[i] &= UINT32_MAX;
    }
}

// A number is its mantissa times 2^(exponent - 150), and a subnormal one has the exponent 1.
static void empty_bins(ot__exact_sum *sum, const uint64_t *bins)
{
    for (int exponent = 0; exponent < NOT_FINITE; exponent++)
        if (bins[exponent] != 0)
            add_at(sum, bins[exponent], 2 * (OT_MAX(exponent, 1) - 1));
    sum->n_not_finite += bins[NOT_FINITE];
}

static void count_square(uint64_t *bins, float x)
{
    uint32_t bits, exponent;
    uint64_t mantissa;

    memcpy(&bits, &x, sizeof bits);
    exponent = bits >> MANTISSA_BITS & NOT_FINITE;
    mantissa = (bits & ((1U << MANTISSA_BITS) - 1)) | (uint32_t)(exponent != 0) << MANTISSA_BITS;
    bins[exponent] += exponent == NOT_FINITE ? 1 : mantissa * mantissa;
}

void ot__exact_sum_squares(ot__exact_sum *sum, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t end = OT_MIN(n, i + CHUNK);
        uint64_t bins[EXPONENTS] = {0};

        for (int64_t k = i; k < end; k++)
            count_square(bins, x[k]);
        empty_bins(sum, bins);
        carry_digits(sum);
    }
}

void ot__exact_sum_add(ot__exact_sum *sum, const ot__exact_sum *other)
{
    for (int i = 0; i < OT_EXACT_DIGITS; i++)
        sum->digits[i] += other->digits[i];
    sum->n_not_finite += other->n_not_finite;
    carry_digits(sum);
}

// Three digits hold 65 bits at least from the highest one on, more than a double has; what is below
// them only tells that there is more.
double ot__exact_sum_value(const ot__exact_sum *sum)
{
    int top = OT_EXACT_DIGITS - 1, n_zeros = 0;
    uint64_t bits;
    bool has_more;

    if (sum->n_not_finite > 0)
        return (double)NAN;
    while (top > 0 && sum->digits[top] == 0)
        top--;
    if (top < 2)
        return ldexp((double)(sum->digits[1] << DIGIT_BITS | sum->digits[0]), LOWEST_BIT);
    while ((sum->digits[top] >> (DIGIT_BITS - 1 - n_zeros) & 1) == 0)
        n_zeros++;
    bits = sum->digits[top] << DIGIT_BITS | sum->digits[top - 1];
    bits = n_zeros == 0 ? bits : bits << n_zeros | sum->digits[top - 2] >> (DIGIT_BITS - n_zeros);
    has_more = n_zeros == 0 ? sum->digits[top - 2] != 0
                            : (sum->digits[top - 2] << n_zeros & UINT32_MAX) != 0;
    for (int i = 0; i < top - 2; i++)
        has_more = has_more || sum->digits[i] != 0;
    bits |= has_more; // below the last bit of a double, so that its rounding sees it
    return ldexp((double)bits, LOWEST_BIT + (top - 1) * DIGIT_BITS - n_zeros);
}
