// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/data.h"

// cmocka compares in float.
static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", value, expected);
}

static void assert_is_bijection(uint64_t seed, uint64_t epoch, int64_t count)
{
    char *seen = calloc((size_t)count, 1);

    assert_non_null(seen);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = ot__permute(seed, epoch, count, i);
        assert_in_range(row, 0, count - 1);
        assert_int_equal(seen[row]++, 0);
    }
    free(seen);
}

static void every_row_comes_exactly_once(void **state)
{
    const int64_t counts[] = {1, 2, 3, 4, 5, 15, 16, 17, 255, 257, 1000, 4096, 4097, 70000};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(counts); i++)
        for (uint64_t seed = 0; seed < 3; seed++)
            assert_is_bijection(seed, seed * 7, counts[i]);
}

static int64_t n_equal(uint64_t seed_a, uint64_t epoch_a, uint64_t seed_b, uint64_t epoch_b)
{
    int64_t n = 0;

    for (int64_t i = 0; i < 1000; i++)
        n += ot__permute(seed_a, epoch_a, 1000, i) == ot__permute(seed_b, epoch_b, 1000, i);
    return n;
}

static void another_seed_or_epoch_is_another_order(void **state)
{
    (void)state;
    assert_int_equal(n_equal(1, 2, 1, 2), 1000);
    // Independent orders agree in one place on average; 12 has probability below 1e-9.
    assert_true(n_equal(1, 0, 2, 0) < 12);
    assert_true(n_equal(1, 0, 1, 1) < 12);
}

static void rows_do_not_stay_near_where_they_were(void **state)
{
    double distance = 0;

    (void)state;
    for (int64_t i = 0; i < 10000; i++)
        distance += (double)llabs(ot__permute(5, 0, 10000, i) - i);
    // Of a random order: n / 3 with a deviation of about n / 4.7 / sqrt(n).
    assert_near(distance / 10000, 10000.0 / 3, 150);
}

static void counts_beyond_32_bits_stay_within_range(void **state)
{
    const int64_t count = INT64_C(5000000000000);

    (void)state;
    for (int64_t i = 0; i < 1000; i++)
        assert_true(ot__permute(1, 1, count, count - 1 - i) < count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_comes_exactly_once),
        cmocka_unit_test(another_seed_or_epoch_is_another_order),
        cmocka_unit_test(rows_do_not_stay_near_where_they_were),
        cmocka_unit_test(counts_beyond_32_bits_stay_within_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
