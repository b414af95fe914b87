// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static void assert_broadcasts(const ot_shape *a, const ot_shape *b, const ot_shape *expected)
{
    ot_shape y;

    assert_int_equal(ot__shape_broadcast(a, b, &y), OT_OK);
    assert_true(ot__shape_equal(&y, expected));
    assert_int_equal(ot__shape_broadcast(b, a, &y), OT_OK);
    assert_true(ot__shape_equal(&y, expected));
}

// The examples of NumPy's and ONNX's documentation of broadcasting.
static void shapes_stretch_as_numpy_says(void **state)
{
    (void)state;
    assert_broadcasts(&OT_SHAPE(2, 3, 4, 5), &OT_SHAPE_SCALAR, &OT_SHAPE(2, 3, 4, 5));
    assert_broadcasts(&OT_SHAPE(2, 3, 4, 5), &OT_SHAPE(5), &OT_SHAPE(2, 3, 4, 5));
    assert_broadcasts(&OT_SHAPE(4, 5), &OT_SHAPE(2, 3, 4, 5), &OT_SHAPE(2, 3, 4, 5));
    assert_broadcasts(&OT_SHAPE(1, 4, 5), &OT_SHAPE(2, 3, 1, 1), &OT_SHAPE(2, 3, 4, 5));
    assert_broadcasts(&OT_SHAPE(3, 4, 5), &OT_SHAPE(2, 1, 1, 1), &OT_SHAPE(2, 3, 4, 5));
    assert_broadcasts(&OT_SHAPE(8, 1, 6, 1), &OT_SHAPE(7, 1, 5), &OT_SHAPE(8, 7, 6, 5));
    assert_broadcasts(&OT_SHAPE(1), &OT_SHAPE(0), &OT_SHAPE(0));
    assert_broadcasts(&OT_SHAPE(0, 3), &OT_SHAPE(3), &OT_SHAPE(0, 3));
    assert_broadcasts(&OT_SHAPE_SCALAR, &OT_SHAPE_SCALAR, &OT_SHAPE_SCALAR);
}

static void the_result_may_be_one_of_the_operands(void **state)
{
    ot_shape a = OT_SHAPE(3, 1);

    (void)state;
    assert_int_equal(ot__shape_broadcast(&a, &OT_SHAPE(2, 1, 4), &a), OT_OK);
    assert_true(ot__shape_equal(&a, &OT_SHAPE(2, 3, 4)));
}

static void shapes_that_do_not_fit_are_both_named(void **state)
{
    ot_shape y;

    (void)state;
    assert_int_equal(ot__shape_broadcast(&OT_SHAPE(2, 3), &OT_SHAPE(2, 4), &y), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "[2,3]"));
    assert_non_null(strstr(ot_error_message(), "[2,4]"));
    assert_int_equal(ot__shape_broadcast(&OT_SHAPE(0), &OT_SHAPE(2), &y), OT_ERR_INVALID);
    assert_int_equal(ot__shape_broadcast(&OT_SHAPE(3, 2), &OT_SHAPE(3), &y), OT_ERR_INVALID);
}

// Reading through the strides finds, at every index of y, the element that NumPy would.
static void strides_read_the_stretched_element(void **state)
{
    static const ot_shape shapes[] = {{0, {0}},       {1, {1}},          {1, {4}},
                                      {2, {3, 1}},    {2, {3, 4}},       {3, {2, 1, 4}},
                                      {3, {2, 3, 1}}, {4, {1, 2, 3, 4}}, {2, {1, 1}}};
    const ot_shape y = OT_SHAPE(2, 3, 4);

    (void)state;
    for (size_t s = 0; s < OT_COUNT(shapes); s++) {
        const ot_shape *x = &shapes[s];
        int64_t strides[OT_MAX_NDIM];

        if (x->ndim > y.ndim)
            continue;
        ot__broadcast_strides(x, &y, strides);
        for (int64_t i = 0; i < 24; i++) {
            const int64_t at[3] = {i / 12, i / 4 % 3, i % 4};
            int64_t expected = 0, found = 0;

            for (int axis = 0; axis < 3; axis++)
                found += at[axis] * strides[axis];
            for (int axis = 0; axis < x->ndim; axis++) {
                const int64_t index = at[axis + 3 - x->ndim];
                expected = expected * x->dim[axis] + (x->dim[axis] == 1 ? 0 : index);
            }
            assert_int_equal(found, expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_stretch_as_numpy_says),
        cmocka_unit_test(the_result_may_be_one_of_the_operands),
        cmocka_unit_test(shapes_that_do_not_fit_are_both_named),
        cmocka_unit_test(strides_read_the_stretched_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
