// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

static void products_are_exact_or_refused(void **state)
{
    int64_t product;
    size_t size;

    (void)state;
    assert_false(ot__mul_overflows(INT64_C(3037000499), INT64_C(3037000499), &product));
    assert_int_equal(product, INT64_C(9223372030926249001));
    assert_true(ot__mul_overflows(INT64_C(3037000500), INT64_C(3037000500), &product));
    assert_false(ot__mul_overflows(INT64_MAX, 1, &product));
    assert_int_equal(product, INT64_MAX);
    assert_true(ot__mul_overflows(INT64_MAX, 2, &product));
    assert_false(ot__mul_overflows(INT64_MAX, 0, &product));
    assert_int_equal(product, 0);
    assert_false(ot__size_mul_overflows(SIZE_MAX, 1, &size));
    assert_true(ot__size_mul_overflows(SIZE_MAX / 2 + 1, 2, &size));
}

static void sums_are_exact_or_refused(void **state)
{
    int64_t sum;
    size_t size;

    (void)state;
    assert_false(ot__add_overflows(INT64_MAX - 1, 1, &sum));
    assert_int_equal(sum, INT64_MAX);
    assert_true(ot__add_overflows(INT64_MAX, 1, &sum));
    assert_false(ot__size_add_overflows(SIZE_MAX - 1, 1, &size));
    assert_true(size == SIZE_MAX);
    assert_true(ot__size_add_overflows(SIZE_MAX, 1, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_exact_or_refused),
        cmocka_unit_test(sums_are_exact_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
