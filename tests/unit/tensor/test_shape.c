// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static void assert_count(const ot_shape *shape, int64_t expected)
{
    int64_t count;

    assert_true(ot__shape_count(shape, &count));
    assert_int_equal(count, expected);
}

static void elements_are_counted(void **state)
{
    (void)state;
    assert_count(&OT_SHAPE_SCALAR, 1);
    assert_count(&OT_SHAPE(2, 3, 4), 24);
    assert_count(&OT_SHAPE(2, 0, 4), 0);
    assert_count(&OT_SHAPE(INT64_MAX), INT64_MAX);
    assert_count(&OT_SHAPE(3037000499, 3037000499), INT64_C(9223372030926249001));
}

static void counts_that_overflow_or_are_unknown_are_refused(void **state)
{
    const int64_t large = INT64_C(1) << 40;
    int64_t count = 7;

    (void)state;
    assert_false(ot__shape_count(&OT_SHAPE(large, large), &count));
    assert_int_equal(count, 0);
    assert_false(ot__shape_count(&OT_SHAPE(2, -1), &count));
    assert_false(ot__shape_count(&OT_SHAPE(0, -1), &count));
    assert_false(ot__shape_count(&OT_SHAPE(INT64_MIN), &count));
    // Empty, but the product of some of its axes overflows.
    assert_false(ot__shape_count(&OT_SHAPE(large, large, 0), &count));
    assert_false(ot__shape_count(&OT_SHAPE(0, large, large), &count));
}

static void shapes_are_equal_when_every_extent_is(void **state)
{
    (void)state;
    assert_true(ot__shape_equal(&OT_SHAPE(2, 3), &OT_SHAPE(2, 3)));
    assert_false(ot__shape_equal(&OT_SHAPE(2, 3), &OT_SHAPE(3, 2)));
    assert_false(ot__shape_equal(&OT_SHAPE(2, 3), &OT_SHAPE(2, 3, 1)));
    assert_true(ot__shape_equal(&OT_SHAPE_SCALAR, &OT_SHAPE_SCALAR));
    assert_false(ot__shape_equal(&OT_SHAPE_SCALAR, &OT_SHAPE(1)));
}

static void strides_are_row_major(void **state)
{
    int64_t strides[OT_MAX_NDIM];

    (void)state;
    ot__shape_strides(&OT_SHAPE(2, 3, 4), strides);
    assert_int_equal(strides[0], 12);
    assert_int_equal(strides[1], 4);
    assert_int_equal(strides[2], 1);
    ot__shape_strides(&OT_SHAPE_SCALAR, strides);
}

static void strides_of_an_impossible_shape_are_not_undefined(void **state)
{
    int64_t strides[OT_MAX_NDIM];
    const int64_t large = INT64_C(1) << 62;

    (void)state; // the sanitizer is the judge
    ot__shape_strides(&OT_SHAPE(large, large, large, 0), strides);
    assert_int_equal(strides[3], 1);
}

static void assert_text(const ot_shape *shape, size_t size, const char *expected)
{
    char text[64];

    memset(text, 'x', sizeof(text));
    assert_ptr_equal(ot__shape_text(shape, text, size), text);
    assert_string_equal(text, expected);
    assert_int_equal(text[size], 'x');
}

static void a_shape_prints_as_a_list(void **state)
{
    (void)state;
    assert_text(&OT_SHAPE(2, 3), 32, "[2,3]");
    assert_text(&OT_SHAPE(-1, 3), 32, "[?,3]");
    assert_text(&OT_SHAPE(7), 32, "[7]");
    assert_text(&OT_SHAPE_SCALAR, 32, "[]");
}

static void a_shape_longer_than_the_buffer_is_cut(void **state)
{
    char none = 'x';

    (void)state;
    assert_text(&OT_SHAPE(123, 456), 6, "[123,");
    assert_text(&OT_SHAPE(123, 456), 8, "[123,45");
    assert_text(&OT_SHAPE(123, 456), 9, "[123,456");
    assert_text(&OT_SHAPE(123, 456), 10, "[123,456]");
    assert_text(&OT_SHAPE(123), 1, "");
    ot__shape_text(&OT_SHAPE(1), &none, 0);
    assert_int_equal(none, 'x');
}

static void axes_count_from_both_ends(void **state)
{
    int axis = 99;

    (void)state;
    assert_true(ot__axis_normalize(0, 3, &axis) && axis == 0);
    assert_true(ot__axis_normalize(2, 3, &axis) && axis == 2);
    assert_true(ot__axis_normalize(-1, 3, &axis) && axis == 2);
    assert_true(ot__axis_normalize(-3, 3, &axis) && axis == 0);
    assert_false(ot__axis_normalize(3, 3, &axis));
    assert_false(ot__axis_normalize(-4, 3, &axis));
    assert_false(ot__axis_normalize(0, 0, &axis));
    assert_false(ot__axis_normalize(INT64_MIN, 3, &axis));
    assert_false(ot__axis_normalize(INT64_MAX, 3, &axis));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_counted),
        cmocka_unit_test(counts_that_overflow_or_are_unknown_are_refused),
        cmocka_unit_test(shapes_are_equal_when_every_extent_is),
        cmocka_unit_test(strides_are_row_major),
        cmocka_unit_test(strides_of_an_impossible_shape_are_not_undefined),
        cmocka_unit_test(a_shape_prints_as_a_list),
        cmocka_unit_test(a_shape_longer_than_the_buffer_is_cut),
        cmocka_unit_test(axes_count_from_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
