// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

enum { LENGTH = 1500 }; // more than one part of the loop, and a rest

static ot_tensor *filled(ot_dtype dtype, double value)
{
    const ot_shape shape = OT_SHAPE(LENGTH);
    ot_tensor *t;

    assert_int_equal(ot_tensor_create(dtype, &shape, &t), OT_OK);
    for (int64_t i = 0; i < LENGTH; i++)
        assert_true(ot__convert((char *)t->data + (size_t)i * ot_dtype_size(dtype), dtype, &value,
                                OT_F64, 1));
    return t;
}

static void put(ot_tensor *t, int64_t at, double value)
{
    assert_true(ot__convert((char *)t->data + (size_t)at * ot_dtype_size(t->dtype), t->dtype,
                            &value, OT_F64, 1));
}

static void the_first_element_that_is_not_finite_is_found(void **state)
{
    static const struct {
        ot_dtype dtype;
        double largest;
    } types[] = {{OT_F16, 65504},
                 {OT_BF16, 3.3895313892515355e38},
                 {OT_F32, 3.4028234663852886e38},
                 {OT_F64, 1.7976931348623157e308}};
    static const double wrong[] = {INFINITY, -INFINITY, NAN};
    static const int64_t places[] = {0, 511, 512, LENGTH - 1};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(types); i++)
        for (size_t w = 0; w < OT_COUNT(wrong); w++)
            for (size_t k = 0; k < OT_COUNT(places); k++) {
                ot_tensor *t = filled(types[i].dtype, -types[i].largest);

                assert_true(ot__tensor_is_finite(t));
                assert_int_equal(ot__tensor_find_not_finite(t), -1);
                put(t, places[k], wrong[w]);
                assert_false(ot__tensor_is_finite(t));
                assert_int_equal(ot__tensor_find_not_finite(t), places[k]);
                ot_tensor_destroy(t);
            }
}

static void whole_numbers_are_always_finite(void **state)
{
    ot_tensor *t = filled(OT_I32, -1); // all bits set

    (void)state;
    assert_true(ot__tensor_is_finite(t));
    ot_tensor_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_element_that_is_not_finite_is_found),
        cmocka_unit_test(whole_numbers_are_always_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
