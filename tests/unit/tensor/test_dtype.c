// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static void the_numbers_are_those_of_onnx(void **state)
{
    (void)state; // TensorProto.DataType
    assert_int_equal(OT_F32, 1);
    assert_int_equal(OT_I64, 7);
    assert_int_equal(OT_STRING, 8);
    assert_int_equal(OT_BOOL, 9);
    assert_int_equal(OT_F16, 10);
    assert_int_equal(OT_F64, 11);
    assert_int_equal(OT_BF16, 16);
    assert_int_equal(OT_I4, 22);
    assert_int_equal(OT_F8E8M0, 24);
}

static void names_and_types_correspond(void **state)
{
    ot_dtype found;

    (void)state;
    assert_string_equal(ot_dtype_name(OT_F32), "f32");
    assert_string_equal(ot_dtype_name(OT_BF16), "bf16");
    assert_string_equal(ot_dtype_name((ot_dtype)99), "unknown");
    assert_string_equal(ot_dtype_name((ot_dtype)-1), "unknown");
    assert_string_equal(ot__dtype_onnx_name(OT_F64), "double");
    assert_string_equal(ot__dtype_onnx_name((ot_dtype)99), "undefined");
    for (int i = OT_F32; i <= OT_I2; i++) {
        assert_true(ot__dtype_from_name(ot_dtype_name((ot_dtype)i), &found));
        assert_int_equal(found, i);
        assert_true(ot__dtype_from_onnx_name(ot__dtype_onnx_name((ot_dtype)i), &found));
        assert_int_equal(found, i);
    }
    assert_false(ot__dtype_from_name("float", &found));
    assert_false(ot__dtype_from_name("", &found));
    assert_false(ot__dtype_from_name("undefined", &found));
    assert_false(ot__dtype_from_onnx_name("f32", &found));
    assert_false(ot__dtype_from_onnx_name("undefined", &found));
}

static void sizes_are_in_whole_bytes(void **state)
{
    (void)state;
    assert_int_equal(ot_dtype_size(OT_F32), 4);
    assert_int_equal(ot_dtype_size(OT_BF16), 2);
    assert_int_equal(ot_dtype_size(OT_BOOL), 1);
    assert_int_equal(ot_dtype_size(OT_C128), 16);
    assert_int_equal(ot_dtype_size(OT_I4), 0);
    assert_int_equal(ot_dtype_size(OT_STRING), 0);
    assert_int_equal(ot_dtype_size(OT_DTYPE_UNDEFINED), 0);
    assert_int_equal(ot_dtype_size((ot_dtype)1000), 0);
}

static void floats_and_integers_are_told_apart(void **state)
{
    static const ot_dtype floats[] = {OT_F16, OT_BF16, OT_F32, OT_F64};
    static const ot_dtype ints[] = {OT_U8, OT_I8, OT_U16, OT_I16, OT_U32, OT_I32, OT_U64, OT_I64};
    int n_floats = 0, n_ints = 0;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(floats); i++)
        assert_true(ot__dtype_is_float(floats[i]));
    for (size_t i = 0; i < OT_COUNT(ints); i++)
        assert_true(ot__dtype_is_int(ints[i]));
    for (int i = -1; i < 64; i++) {
        n_floats += ot__dtype_is_float((ot_dtype)i);
        n_ints += ot__dtype_is_int((ot_dtype)i);
    }
    assert_int_equal(n_floats, OT_COUNT(floats));
    assert_int_equal(n_ints, OT_COUNT(ints));
}

static void bytes_of_many_elements_are_exact_or_refused(void **state)
{
    size_t n;

    (void)state;
    assert_true(ot__dtype_bytes(OT_F32, 10, &n) && n == 40);
    assert_true(ot__dtype_bytes(OT_F32, 0, &n) && n == 0);
    assert_true(ot__dtype_bytes(OT_I4, 3, &n) && n == 2); // two to a byte
    assert_true(ot__dtype_bytes(OT_I2, 5, &n) && n == 2); // four to a byte
    assert_true(ot__dtype_bytes(OT_U4, 4, &n) && n == 2);
    assert_false(ot__dtype_bytes(OT_F32, -1, &n));
    assert_false(ot__dtype_bytes(OT_STRING, 1, &n));
    assert_false(ot__dtype_bytes(OT_DTYPE_UNDEFINED, 1, &n));
    assert_false(ot__dtype_bytes((ot_dtype)77, 1, &n));
    assert_false(ot__dtype_bytes(OT_F64, INT64_MAX / 8 + 1, &n));
    assert_false(ot__dtype_bytes(OT_C128, INT64_MAX, &n));
    assert_int_equal(n, 0);
}

static void a_text_is_where_its_characters_are(void **state)
{
    size_t n = 7;

    (void)state;
    assert_true(ot__element_bytes(OT_STRING, 3, &n) && n == 3 * sizeof(ot__bytes));
    assert_true(ot__element_bytes(OT_F64, 3, &n) && n == 24);
    assert_int_equal(ot__element_size(OT_STRING), sizeof(ot__bytes));
    assert_int_equal(ot__element_size(OT_U4), 0);
    assert_false(ot__element_bytes(OT_STRING, -1, &n));
    assert_false(ot__element_bytes(OT_STRING, INT64_MAX / 8 + 1, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_those_of_onnx),
        cmocka_unit_test(names_and_types_correspond),
        cmocka_unit_test(sizes_are_in_whole_bytes),
        cmocka_unit_test(floats_and_integers_are_told_apart),
        cmocka_unit_test(bytes_of_many_elements_are_exact_or_refused),
        cmocka_unit_test(a_text_is_where_its_characters_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
