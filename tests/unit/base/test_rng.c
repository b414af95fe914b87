// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

// The known answers that Random123 publishes for philox4x32 with 10 rounds.
static void blocks_are_those_of_the_published_test_vectors(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(vectors); i++) {
        const uint32_t *c = vectors[i].counter, *k = vectors[i].key;
        const ot__rng_key key = {.seed = (uint64_t)k[1] << 32 | k[0],
                                 .stream = (uint64_t)c[3] << 32 | c[2]};
        uint32_t words[4];

        ot__rng_block(key, (uint64_t)c[1] << 32 | c[0], words);
        assert_memory_equal(words, vectors[i].expected, sizeof(words));
    }
}

static void every_part_of_a_key_changes_it(void **state)
{
    const ot__rng_key keys[] = {
        ot__rng_key_make(0, 0, 0, ""),
        ot__rng_key_make(1, 0, 0, ""),
        ot__rng_key_make(0, 1, 0, ""),
        ot__rng_key_make(0, 0, 1, ""),
        ot__rng_key_make(0, 0, 0, "a"),
        ot__rng_key_make(0, 0, 0, "b"),
        ot__rng_key_make(0, 0, 0, "ab"),
        ot__rng_key_make(0, 0, 0, "ba"),
        ot__rng_key_make(1, 1, 0, ""),
        ot__rng_key_make(UINT64_C(1) << 32, 0, 0, ""),
        ot__rng_key_make(0, 0, UINT64_C(1) << 32, ""),
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(keys); i++)
        for (size_t k = 0; k < i; k++)
            assert_true(keys[i].seed != keys[k].seed || keys[i].stream != keys[k].stream);
}

static void neighbouring_keys_give_unrelated_numbers(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 64; i++) {
        uint32_t a[4], b[4];
        int n_different = 0;

        ot__rng_block(ot__rng_key_make(5, i, 0, "mask"), 0, a);
        ot__rng_block(ot__rng_key_make(5, i + 1, 0, "mask"), 0, b);
        for (int k = 0; k < 4; k++)
            n_different += __builtin_popcount(a[k] ^ b[k]);
        assert_in_range(n_different, 32, 96); // half of 128 bits, give or take
    }
}

static void a_uniform_number_is_the_first_53_bits_of_its_block(void **state)
{
    const ot__rng_key key = {.seed = 0, .stream = 0};

    (void)state; // 0x6627e8d5 0xe169c58d, by the first test vector
    assert_true(ot__rng_uniform(key, 0) ==
                (double)(UINT64_C(0x6627e8d5e169c58d) >> 11) / 9007199254740992.0);
}

static void uniform_numbers_fill_their_range_evenly(void **state)
{
    enum { N = 100000, N_BINS = 10 };
    const ot__rng_key key = ot__rng_key_make(42, 0, 0, "uniform");
    int bins[N_BINS] = {0};
    double sum = 0, chi2 = 0;

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        const double u = ot__rng_uniform(key, i);
        assert_true(u >= 0 && u < 1);
        bins[(int)(u * N_BINS)]++;
        sum += u;
    }
    for (int i = 0; i < N_BINS; i++)
        chi2 += (bins[i] - N / N_BINS) * (double)(bins[i] - N / N_BINS) / (N / N_BINS);
    assert_true(fabs(sum / N - 0.5) < 4 * sqrt(1.0 / 12 / N));
    assert_true(chi2 < 27.88); // 9 degrees of freedom: one in a thousand is above
}

static void normal_numbers_have_the_moments_of_the_normal_distribution(void **state)
{
    enum { N = 100000 };
    const ot__rng_key key = ot__rng_key_make(42, 0, 0, "normal");
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
    int n_beyond_2 = 0;

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        const double x = ot__rng_normal(key, i);
        assert_true(isfinite(x));
        m1 += x / N;
        m2 += x * x / N;
        m3 += x * x * x / N;
        m4 += x * x * x * x / N;
        n_beyond_2 += fabs(x) > 2;
    }
    // Four standard errors: the variances of x, x^2, x^3, x^4 are 1, 2, 15, 96.
    assert_true(fabs(m1) < 4 * sqrt(1.0 / N));
    assert_true(fabs(m2 - 1) < 4 * sqrt(2.0 / N));
    assert_true(fabs(m3) < 4 * sqrt(15.0 / N));
    assert_true(fabs(m4 - 3) < 4 * sqrt(96.0 / N));
    assert_true(fabs(n_beyond_2 / (double)N - 0.0455003) < 4 * sqrt(0.0455 * 0.9545 / N));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_of_the_published_test_vectors),
        cmocka_unit_test(every_part_of_a_key_changes_it),
        cmocka_unit_test(neighbouring_keys_give_unrelated_numbers),
        cmocka_unit_test(a_uniform_number_is_the_first_53_bits_of_its_block),
        cmocka_unit_test(uniform_numbers_fill_their_range_evenly),
        cmocka_unit_test(normal_numbers_have_the_moments_of_the_normal_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
