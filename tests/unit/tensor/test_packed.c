// SPDX-License-Identifier: Apache-2.0
// Elements that share bytes. How they lie is as onnx.numpy_helper packs them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static const ot__cast_rule as_usual = {0};

static void the_first_element_lies_in_the_lowest_bits(void **state)
{
    static const struct {
        ot_dtype dtype;
        uint8_t elements[5], bytes[4];
        size_t n_bytes;
    } rows[] = {
        {OT_U4, {1, 2, 15, 0, 7}, {0x21, 0x0f, 0x07}, 3},
        {OT_I2, {1, 2, 3, 0, 3}, {0x39, 0x03}, 2},
        {OT_F6E2M3, {1, 2, 63, 0, 32}, {0x81, 0xf0, 0x03, 0x20}, 4},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(rows); i++) {
        uint8_t bytes[4] = {0xff, 0xff, 0xff, 0xff}, again[5];

        ot__pack_bits(bytes, rows[i].dtype, 0, rows[i].elements, 5);
        assert_memory_equal(bytes, rows[i].bytes, rows[i].n_bytes);
        ot__unpack_bits(again, bytes, rows[i].dtype, 0, 5);
        assert_memory_equal(again, rows[i].elements, 5);
        ot__unpack_bits(again, bytes, rows[i].dtype, 3, 2);
        assert_memory_equal(again, rows[i].elements + 3, 2);
    }
}

static void nothing_is_written_behind_the_last_byte(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 9; n++) {
        static const ot_dtype types[] = {OT_I4, OT_U2, OT_F6E3M2, OT_F4E2M1};

        for (size_t t = 0; t < OT_COUNT(types); t++) {
            double elements[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
            uint8_t bytes[16];
            size_t n_bytes;

            memset(bytes, 0xaa, sizeof bytes);
            assert_true(ot__convert(bytes, types[t], elements, OT_F64, n));
            assert_true(ot__dtype_bytes(types[t], n, &n_bytes));
            for (size_t k = n_bytes; k < sizeof bytes; k++)
                assert_int_equal(bytes[k], 0xaa);
            for (int64_t k = 0; k < n; k++)
                assert_true(ot__element_f64(bytes, types[t], k) == 1);
        }
    }
}

static void a_range_begins_anywhere(void **state)
{
    const int64_t numbers[] = {-8, 7, -1, 3, 0};
    uint8_t packed[3];
    int8_t read[3];

    (void)state;
    for (int64_t k = 0; k < 5; k++)
        assert_true(
            ot__convert_range(packed, OT_I4, k, (ot__elements){numbers, OT_I64, k}, 1, &as_usual));
    assert_true(ot__convert_range(read, OT_I8, 0, (ot__elements){packed, OT_I4, 1}, 3, &as_usual));
    assert_int_equal(read[0], 7);
    assert_int_equal(read[1], -1);
    assert_int_equal(read[2], 3);
}

static void the_same_type_is_copied_from_within_a_byte(void **state)
{
    const uint8_t from[] = {0x21, 0x43, 0x65};
    uint8_t to[3] = {0xff, 0xff, 0xff};

    (void)state;
    assert_true(ot__convert_range(to, OT_U4, 0, (ot__elements){from, OT_U4, 1}, 3, &as_usual));
    assert_int_equal(to[0], 0x32);
    assert_int_equal(to[1], 0x04);
    assert_int_equal(to[2], 0xff);
}

static void all_numbers_of_a_type_come_back_from_the_type_of_a_byte(void **state)
{
    (void)state;
    for (int t = 1; t <= OT_F6E3M2; t++) {
        const ot_dtype dtype = (ot_dtype)t;

        if (!ot__dtype_is_packed(dtype)) {
            assert_int_equal(ot__dtype_unpacked(dtype), dtype);
            continue;
        }
        for (int bits = 0; bits < 1 << ot__dtype_bits(dtype); bits++) {
            const uint8_t pattern = (uint8_t)bits;
            uint8_t packed = 0, wide = 0, again = 0;

            ot__pack_bits(&packed, dtype, 0, &pattern, 1);
            assert_true(ot__convert(&wide, ot__dtype_unpacked(dtype), &packed, dtype, 1));
            assert_true(ot__convert(&again, dtype, &wide, ot__dtype_unpacked(dtype), 1));
            assert_int_equal(again, packed);
        }
    }
}

static void a_tensor_of_them_is_uniform_where_all_are_equal(void **state)
{
    uint8_t bytes[] = {0x33, 0x03};
    ot_tensor *tensor;

    (void)state;
    assert_int_equal(ot_tensor_wrap(OT_U4, &OT_SHAPE(3), bytes, sizeof bytes, &tensor), OT_OK);
    assert_true(ot__tensor_is_uniform(tensor));
    bytes[1] = 0x04;
    assert_false(ot__tensor_is_uniform(tensor));
    assert_int_equal(ot__tensor_get_i64(tensor, 2), 4);
    ot_tensor_destroy(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_element_lies_in_the_lowest_bits),
        cmocka_unit_test(nothing_is_written_behind_the_last_byte),
        cmocka_unit_test(a_range_begins_anywhere),
        cmocka_unit_test(the_same_type_is_copied_from_within_a_byte),
        cmocka_unit_test(all_numbers_of_a_type_come_back_from_the_type_of_a_byte),
        cmocka_unit_test(a_tensor_of_them_is_uniform_where_all_are_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
