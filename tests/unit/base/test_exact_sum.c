// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "exact_sums.h"

static float of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static void a_sum_is_rounded_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(recorded); i++) {
        ot__exact_sum sum = {0};
        float x[40];

        for (int k = 0; k < recorded[i].n; k++)
            x[k] = of_bits(recorded[i].bits[k]);
        ot__exact_sum_squares(&sum, x, recorded[i].n);
        if (ot__exact_sum_value(&sum) != recorded[i].sum)
            fail_msg("%s: %a, expected %a", recorded[i].name, ot__exact_sum_value(&sum),
                     recorded[i].sum);
    }
}

// ---- against addition bit by bit ----

enum { N = 200000, BITS = OT_EXACT_DIGITS * 32 };

static float *random_bits(uint64_t seed)
{
    const ot__rng_key key = ot__rng_key_make(seed, 0, 0, "");
    float *x = ot__alloc(N * sizeof *x);

    assert_non_null(x);
    for (int i = 0; i < N; i += 4) {
        uint32_t words[4];

        ot__rng_block(key, (uint64_t)i, words);
        for (int k = 0; k < 4; k++) // exponents of all sizes but that of infinities
            x[i + k] = of_bits((words[k] >> 23 & 255) == 255 ? words[k] & 0x7fffff : words[k]);
    }
    return x;
}

static void add_bits(unsigned char *bits, uint64_t value, int place)
{
    for (int carry = 0; value != 0 || carry != 0; value >>= 1, place++) {
        const int digit = bits[place] + (int)(value & 1) + carry;

        assert_true(place < BITS);
        bits[place] = (unsigned char)(digit & 1);
        carry = digit >> 1;
    }
}

static void digits_are_those_of_addition_bit_by_bit(void **state)
{
    unsigned char bits[BITS] = {0};
    ot__exact_sum sum = {0};
    float *x = random_bits(3);

    (void)state;
    ot__exact_sum_squares(&sum, x, N);
    for (int i = 0; i < N; i++) {
        int exponent;
        const double mantissa = ldexp(frexp(fabs((double)x[i]), &exponent), 24);
        int place = 2 * (exponent - 24) + 298;
        uint64_t square = (uint64_t)mantissa * (uint64_t)mantissa;

        for (; place < 0; place++) // of subnormal numbers the last bits are 0
            square >>= 1;
        add_bits(bits, square, place);
    }
    for (int i = 0; i < BITS; i++)
        assert_int_equal(sum.digits[i / 32] >> (i % 32) & 1, bits[i]);
    ot__free(x);
}

static void cuts_and_order_do_not_matter(void **state)
{
    float *x = random_bits(4);
    ot__exact_sum whole = {0};

    (void)state;
    ot__exact_sum_squares(&whole, x, N);
    for (int n_parts = 2; n_parts <= 9; n_parts++) {
        ot__exact_sum sum = {0};

        for (int part = n_parts - 1; part >= 0; part--) {
            const int begin = N / n_parts * part;
            const int end = part == n_parts - 1 ? N : N / n_parts * (part + 1);
            ot__exact_sum own = {0};

            ot__exact_sum_squares(&own, x + begin, end - begin);
            ot__exact_sum_add(&sum, &own);
        }
        assert_memory_equal(&sum, &whole, sizeof whole);
    }
    ot__free(x);
}

static void many_large_numbers_do_not_overflow(void **state)
{
    const float large = 0x1.fffffep+127F;
    ot__exact_sum sum = {0};
    float *x = ot__alloc(N * sizeof *x);

    (void)state;
    assert_non_null(x);
    for (int i = 0; i < N; i++)
        x[i] = large;
    ot__exact_sum_squares(&sum, x, N);
    assert_true(ot__exact_sum_value(&sum) == N * ((double)large * (double)large));
    for (int i = 0; i < 40; i++) { // 2^40 times as many
        const ot__exact_sum other = sum;

        ot__exact_sum_add(&sum, &other);
    }
    assert_true(ot__exact_sum_value(&sum) == ldexp(N * ((double)large * (double)large), 40));
    ot__free(x);
}

static void infinities_and_nan_show(void **state)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(bad); i++) {
        const float x[] = {1, bad[i], 2};
        ot__exact_sum sum = {0}, other = {0};

        ot__exact_sum_squares(&sum, x, 3);
        assert_true(isnan(ot__exact_sum_value(&sum)));
        ot__exact_sum_squares(&other, x, 1);
        ot__exact_sum_add(&other, &sum);
        assert_true(isnan(ot__exact_sum_value(&other)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_is_rounded_once),
        cmocka_unit_test(digits_are_those_of_addition_bit_by_bit),
        cmocka_unit_test(cuts_and_order_do_not_matter),
        cmocka_unit_test(many_large_numbers_do_not_overflow),
        cmocka_unit_test(infinities_and_nan_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
