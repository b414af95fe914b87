// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static void a_new_tensor_is_zero_and_aligned(void **state)
{
    ot_tensor *t;

    (void)state;
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(2, 3), &t), OT_OK);
    assert_int_equal(ot_tensor_dtype(t), OT_F32);
    assert_true(ot__shape_equal(ot_tensor_shape(t), &OT_SHAPE(2, 3)));
    assert_int_equal(ot_tensor_count(t), 6);
    assert_int_equal(ot_tensor_bytes(t), 24);
    assert_int_equal((uintptr_t)ot_tensor_data(t) % 64, 0);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)ot_tensor_data_const(t))[i] == 0);
    memset(ot_tensor_data(t), 1, 24);
    ot_tensor_destroy(t);
    ot_tensor_destroy(NULL);
}

static void scalars_empty_and_packed_tensors_have_their_sizes(void **state)
{
    static const struct {
        ot_dtype dtype;
        ot_shape shape;
        int64_t count;
        size_t n_bytes;
    } cases[] = {
        {OT_F64, {0, {0}}, 1, 8},
        {OT_F32, {2, {0, 5}}, 0, 0},
        {OT_I4, {1, {5}}, 5, 3},
        {OT_BOOL, {16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}}, 2, 2},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_tensor *t;

        assert_int_equal(ot_tensor_create(cases[i].dtype, &cases[i].shape, &t), OT_OK);
        assert_int_equal(ot_tensor_count(t), cases[i].count);
        assert_int_equal(ot_tensor_bytes(t), cases[i].n_bytes);
        assert_non_null(ot_tensor_data(t));
        ot_tensor_destroy(t);
    }
}

static void what_cannot_be_a_tensor_is_refused_with_the_reason(void **state)
{
    static const struct {
        ot_dtype dtype;
        ot_shape shape;
        const char *reason;
    } cases[] = {
        {OT_F32, {2, {3, -1}}, "axis 1"},
        {OT_F32, {-1, {0}}, "16 axes"},
        {OT_F32, {17, {0}}, "16 axes"},
        {OT_STRING, {1, {2}}, "string"},
        {OT_DTYPE_UNDEFINED, {1, {2}}, "undefined"},
        {(ot_dtype)99, {1, {2}}, "unknown"},
        {OT_F32, {2, {INT64_C(1) << 40, INT64_C(1) << 40}}, "[1099511627776,1099511627776]"},
        {OT_F64, {1, {INT64_MAX}}, "f64"},
    };
    char byte;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_tensor *t = (ot_tensor *)&byte;

        assert_int_equal(ot_tensor_create(cases[i].dtype, &cases[i].shape, &t), OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), cases[i].reason));
        assert_null(t);
        t = (ot_tensor *)&byte;
        assert_int_equal(ot_tensor_wrap(cases[i].dtype, &cases[i].shape, &byte, 1, &t),
                         OT_ERR_INVALID);
        assert_null(t);
    }
}

static void more_memory_than_there_is_is_an_error(void **state)
{
    ot_tensor *t;

    (void)state;
    assert_int_equal(ot_tensor_create(OT_U8, &OT_SHAPE(INT64_C(1) << 59), &t), OT_ERR_NO_MEMORY);
    assert_null(t);
}

static void a_wrapped_buffer_stays_the_callers(void **state)
{
    float data[] = {1, 2, 3, 4};
    ot_tensor *t;

    (void)state;
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(2, 2), data, sizeof(data), &t), OT_OK);
    assert_ptr_equal(ot_tensor_data(t), data);
    ((float *)ot_tensor_data(t))[3] = 5;
    ot_tensor_destroy(t);
    assert_true(data[3] == 5);
}

static void a_buffer_of_the_wrong_size_is_refused_with_both_sizes(void **state)
{
    float data[4] = {0};
    ot_tensor *t;

    (void)state;
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(3), data, sizeof(data), &t), OT_ERR_INVALID);
    assert_null(t);
    assert_non_null(strstr(ot_error_message(), "12"));
    assert_non_null(strstr(ot_error_message(), "16"));
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(4), NULL, 16, &t), OT_ERR_INVALID);
}

static void nothing_may_be_wrapped_without_a_buffer(void **state)
{
    ot_tensor *t, *copy;

    (void)state;
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(0, 3), NULL, 0, &t), OT_OK);
    assert_int_equal(ot_tensor_clone(t, &copy), OT_OK);
    assert_int_equal(ot_tensor_count(copy), 0);
    ot_tensor_destroy(copy);
    ot_tensor_destroy(t);
}

static void a_clone_has_its_own_elements(void **state)
{
    int64_t data[] = {7, -8};
    ot_tensor *t, *copy;

    (void)state;
    assert_int_equal(ot_tensor_wrap(OT_I64, &OT_SHAPE(2), data, sizeof(data), &t), OT_OK);
    assert_int_equal(ot_tensor_clone(t, &copy), OT_OK);
    ot_tensor_destroy(t);
    data[0] = 0;
    assert_int_equal(ot_tensor_dtype(copy), OT_I64);
    assert_true(ot__shape_equal(ot_tensor_shape(copy), &OT_SHAPE(2)));
    assert_int_equal(ot__tensor_get_i64(copy, 0), 7);
    assert_int_equal(ot__tensor_get_i64(copy, 1), -8);
    ot_tensor_destroy(copy);
}

static void elements_are_read_as_f64_and_i64(void **state)
{
    float f32[] = {1.5f, -2.5f};
    uint16_t f16[] = {0x3e00, 0xc100};
    uint8_t bools[] = {0, 3};
    uint64_t u64[] = {1, UINT64_C(1) << 63};
    ot_tensor *t;

    (void)state;
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(2), f32, sizeof(f32), &t), OT_OK);
    assert_true(ot__tensor_get_f64(t, 1) == -2.5);
    assert_int_equal(ot__tensor_get_i64(t, 1), -2);
    ot_tensor_destroy(t);
    assert_int_equal(ot_tensor_wrap(OT_F16, &OT_SHAPE(2), f16, sizeof(f16), &t), OT_OK);
    assert_true(ot__tensor_get_f64(t, 0) == 1.5 && ot__tensor_get_f64(t, 1) == -2.5);
    ot_tensor_destroy(t);
    assert_int_equal(ot_tensor_wrap(OT_BOOL, &OT_SHAPE(2), bools, sizeof(bools), &t), OT_OK);
    assert_true(ot__tensor_get_f64(t, 0) == 0 && ot__tensor_get_i64(t, 1) == 1);
    ot_tensor_destroy(t);
    assert_int_equal(ot_tensor_wrap(OT_U64, &OT_SHAPE(2), u64, sizeof(u64), &t), OT_OK);
    assert_true(ot__tensor_get_f64(t, 1) == 0x1p63);
    ot_tensor_destroy(t);
}

static void every_allocation_may_fail(void **state)
{
    float data[4] = {0};
    ot_status st = OT_ERR_NO_MEMORY;
    int n = 0;

    (void)state;
    for (; st != OT_OK; n++) {
        ot_tensor *a = NULL, *b = NULL, *c = NULL;

        ot__alloc_fail_after(n);
        st = ot_tensor_create(OT_F32, &OT_SHAPE(4), &a);
        if (st == OT_OK)
            st = ot_tensor_wrap(OT_F32, &OT_SHAPE(4), data, sizeof(data), &b);
        if (st == OT_OK)
            st = ot_tensor_clone(b, &c);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && c == NULL));
        ot_tensor_destroy(a);
        ot_tensor_destroy(b);
        ot_tensor_destroy(c);
    }
    assert_int_equal(n, 2 + 1 + 2 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_tensor_is_zero_and_aligned),
        cmocka_unit_test(scalars_empty_and_packed_tensors_have_their_sizes),
        cmocka_unit_test(what_cannot_be_a_tensor_is_refused_with_the_reason),
        cmocka_unit_test(more_memory_than_there_is_is_an_error),
        cmocka_unit_test(a_wrapped_buffer_stays_the_callers),
        cmocka_unit_test(a_buffer_of_the_wrong_size_is_refused_with_both_sizes),
        cmocka_unit_test(nothing_may_be_wrapped_without_a_buffer),
        cmocka_unit_test(a_clone_has_its_own_elements),
        cmocka_unit_test(elements_are_read_as_f64_and_i64),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
