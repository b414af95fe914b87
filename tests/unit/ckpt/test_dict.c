// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "onnxtrain/dict.h"

static ot_tensor *tensor_of(float first)
{
    ot_tensor *tensor;

    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(2), &tensor), OT_OK);
    ((float *)ot_tensor_data(tensor))[0] = first;
    return tensor;
}

// One value of each kind, and a dict within; what fails, fails the whole.
static ot_status fill(ot_dict *dict, const ot_tensor *tensor)
{
    static const int64_t ints[] = {3, -4};
    ot_dict *inner;

    OT_TRY(ot_dict_set_bool(dict, "bool", 7));
    OT_TRY(ot_dict_set_int(dict, "int", INT64_MIN));
    OT_TRY(ot_dict_set_float(dict, "float", 0.1));
    OT_TRY(ot_dict_set_string(dict, "string", "a/b"));
    OT_TRY(ot_dict_set_ints(dict, "ints", ints, 2));
    OT_TRY(ot_dict_set_ints(dict, "no ints", NULL, 0));
    OT_TRY(ot_dict_set_tensor(dict, "tensor", tensor));
    OT_TRY(ot_dict_set_dict(dict, "dict", &inner));
    OT_TRY(ot_dict_set_int(inner, "a.b", 1)); // names are no paths
    return ot_dict_set_dict(inner, "empty", &inner);
}

static void values_come_back_in_the_order_in_which_they_were_set(void **state)
{
    static const char *const names[] = {"bool", "int",     "float",  "string",
                                        "ints", "no ints", "tensor", "dict"};
    static const ot_dict_kind kinds[] = {OT_DICT_BOOL, OT_DICT_INT,  OT_DICT_FLOAT,  OT_DICT_STRING,
                                         OT_DICT_INTS, OT_DICT_INTS, OT_DICT_TENSOR, OT_DICT_DICT};
    ot_tensor *tensor = tensor_of(5);
    const ot_tensor *got;
    const char *string;
    const int64_t *ints;
    ot_dict *dict, *inner;
    ot_dict_kind kind;
    int64_t i;
    double f;
    int b, n;

    (void)state;
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(fill(dict, tensor), OT_OK);
    assert_int_equal(ot_dict_count(dict), OT_COUNT(names));
    for (int k = 0; k < ot_dict_count(dict); k++) {
        assert_string_equal(ot_dict_name(dict, k), names[k]);
        assert_int_equal(ot_dict_kind_of(dict, names[k], &kind), OT_OK);
        assert_int_equal(kind, kinds[k]);
    }
    assert_null(ot_dict_name(dict, -1));
    assert_null(ot_dict_name(dict, (int)OT_COUNT(names)));
    assert_int_equal(ot_dict_get_bool(dict, "bool", &b), OT_OK);
    assert_int_equal(b, 1);
    assert_int_equal(ot_dict_get_int(dict, "int", &i), OT_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(ot_dict_get_float(dict, "float", &f), OT_OK);
    assert_true(f == 0.1);
    assert_int_equal(ot_dict_get_string(dict, "string", &string), OT_OK);
    assert_string_equal(string, "a/b");
    assert_int_equal(ot_dict_get_ints(dict, "ints", &ints, &n), OT_OK);
    assert_true(n == 2 && ints[0] == 3 && ints[1] == -4);
    assert_int_equal(ot_dict_get_ints(dict, "no ints", &ints, &n), OT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(ot_dict_get_tensor(dict, "tensor", &got), OT_OK);
    assert_ptr_not_equal(got, tensor);
    assert_true(((const float *)ot_tensor_data_const(got))[0] == 5);
    assert_int_equal(ot_dict_get_dict(dict, "dict", &inner), OT_OK);
    assert_int_equal(ot_dict_get_int(inner, "a.b", &i), OT_OK);
    assert_int_equal(ot_dict_count(inner), 2);
    ot_dict_destroy(inner); // it is the outer one's
    assert_int_equal(ot_dict_count(inner), 2);
    ot_dict_destroy(dict);
    ot_tensor_destroy(tensor);
}

static void what_is_missing_or_of_another_kind_is_told(void **state)
{
    ot_dict *dict, *inner;
    int64_t i;
    int b;

    (void)state;
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot_dict_set_int(dict, "step", 3), OT_OK);
    assert_int_equal(ot_dict_get_int(dict, "stpe", &i), OT_ERR_NOT_FOUND);
    assert_string_equal(ot_error_message(),
                        "the dict has no 'stpe', it has: step; did you mean 'step'?");
    assert_int_equal(ot_dict_get_bool(dict, "step", &b), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "'step' of the dict is of kind int, expected bool");
    assert_int_equal(ot_dict_get_dict(dict, "step", &inner), OT_ERR_INVALID);
    assert_null(inner);
    assert_int_equal(ot_dict_remove(dict, "x"), OT_ERR_NOT_FOUND);
    assert_int_equal(ot_dict_set_int(dict, "", 3), OT_ERR_INVALID);
    assert_int_equal(ot_dict_set_ints(dict, "n", &i, -1), OT_ERR_INVALID);
    assert_int_equal(ot_dict_count(dict), 1);
    ot_dict_destroy(dict);
}

static void a_value_is_replaced_in_its_place_and_others_move_up_when_one_goes(void **state)
{
    ot_dict *dict;
    ot_tensor *tensor = tensor_of(1);
    const ot_tensor *got;
    int64_t i;

    (void)state;
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    for (int k = 0; k < 100; k++) {
        char name[16];

        snprintf(name, sizeof name, "k%d", k);
        assert_int_equal(ot_dict_set_int(dict, name, k), OT_OK);
    }
    assert_int_equal(ot_dict_take_tensor(dict, "k50", tensor), OT_OK);
    assert_int_equal(ot_dict_get_tensor(dict, "k50", &got), OT_OK);
    assert_ptr_equal(got, tensor);
    assert_string_equal(ot_dict_name(dict, 50), "k50");
    assert_int_equal(ot_dict_set_string(dict, "k50", "text"), OT_OK); // destroys the tensor
    assert_int_equal(ot_dict_remove(dict, "k0"), OT_OK);
    assert_int_equal(ot_dict_remove(dict, "k99"), OT_OK);
    assert_int_equal(ot_dict_count(dict), 98);
    for (int k = 1; k < 99; k++) {
        char name[16];

        snprintf(name, sizeof name, "k%d", k);
        assert_string_equal(ot_dict_name(dict, k - 1), name);
        assert_int_equal(ot_dict_get_int(dict, name, &i), k == 50 ? OT_ERR_INVALID : OT_OK);
        if (k != 50)
            assert_int_equal(i, k);
    }
    ot_dict_destroy(dict);
}

static void a_deep_tree_is_destroyed(void **state)
{
    enum { DEEP = 100000 };
    ot_dict *root, *at;

    (void)state;
    assert_int_equal(ot_dict_create(&root), OT_OK);
    at = root;
    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(ot_dict_set_int(at, "i", i), OT_OK);
        assert_int_equal(ot_dict_set_dict(at, "d", &at), OT_OK);
    }
    assert_int_equal(ot_dict_set_int(root, "d", 1), OT_OK); // all but the root
    assert_int_equal(ot_dict_count(root), 2);
    ot_dict_destroy(root);
}

static void every_allocation_may_fail(void **state)
{
    ot_tensor *tensor = tensor_of(1);
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n++) {
        ot_dict *dict;
        int count;

        ot__alloc_fail_after(n);
        st = ot_dict_create(&dict);
        OT_THEN(st, fill(dict, tensor));
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        count = ot_dict_count(dict);
        for (int k = 0; k < count; k++) { // what is there is whole
            ot_dict_kind kind;

            assert_int_equal(ot_dict_kind_of(dict, ot_dict_name(dict, k), &kind), OT_OK);
        }
        ot_dict_destroy(dict);
    }
    ot_tensor_destroy(tensor);
}

static const ot_box rows[] = {{2, {0, 0}, {2, 3}}, {2, {4, 0}, {1, 3}}};

// A value of each kind that states of several processes have.
static ot_status fill_with_shards(ot_dict *dict)
{
    ot_dict *list, *inner;

    OT_TRY(ot_dict_set_null(dict, "null"));
    OT_TRY(ot_dict_set_bytes(dict, "bytes", "a\0b", 3));
    OT_TRY(ot_dict_set_bytes(dict, "no bytes", NULL, 0));
    OT_TRY(ot_dict_set_list(dict, "list", &list));
    OT_TRY(ot_dict_set_string(list, "0", "first"));
    OT_TRY(ot_dict_set_dict(list, "1", &inner));
    OT_TRY(ot_dict_set_float(inner, "lr", 0.5));
    OT_TRY(ot_dict_set_list(list, "2", &inner));
    return ot_dict_take_shards(dict, "shards", OT_F32, &OT_SHAPE(5, 3), rows, NULL, 2);
}

static void lists_bytes_and_shards_come_back(void **state)
{
    ot_dict *dict, *list, *inner;
    const ot_shards *shards;
    const void *bytes;
    ot_dict_kind kind;
    size_t n_bytes;

    (void)state;
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(fill_with_shards(dict), OT_OK);
    assert_int_equal(ot_dict_kind_of(dict, "null", &kind), OT_OK);
    assert_int_equal(kind, OT_DICT_NULL);
    assert_int_equal(ot_dict_get_bytes(dict, "bytes", &bytes, &n_bytes), OT_OK);
    assert_int_equal(n_bytes, 3);
    assert_memory_equal(bytes, "a\0b", 3);
    assert_int_equal(ot_dict_get_bytes(dict, "no bytes", &bytes, &n_bytes), OT_OK);
    assert_int_equal(n_bytes, 0);
    assert_int_equal(ot_dict_get_dict(dict, "list", &inner), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "'list' of the dict is of kind list, expected dict");
    assert_int_equal(ot_dict_get_list(dict, "list", &list), OT_OK);
    assert_int_equal(ot_dict_count(list), 3);
    assert_string_equal(ot_dict_name(list, 1), "1");
    assert_int_equal(ot_dict_set_int(list, "1", 7), OT_OK); // in its place
    assert_int_equal(ot_dict_get_shards(dict, "shards", &shards), OT_OK);
    assert_int_equal(shards->dtype, OT_F32);
    assert_int_equal(shards->shape.dim[0], 5);
    assert_int_equal(shards->n_parts, 2);
    assert_memory_equal(shards->boxes, rows, sizeof rows);
    assert_int_equal(ot_tensor_shape(shards->parts[1])->dim[0], 1);
    assert_true(((const float *)ot_tensor_data_const(shards->parts[0]))[5] == 0);
    ot_dict_destroy(dict);
}

static void a_list_has_the_numbers_of_its_values_as_names(void **state)
{
    ot_dict *dict, *list;

    (void)state;
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot_dict_set_list(dict, "list", &list), OT_OK);
    assert_int_equal(ot_dict_set_int(list, "1", 1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "a list of 0 values has no place '1', its next is '0'");
    assert_int_equal(ot_dict_set_int(list, "00", 1), OT_ERR_INVALID);
    assert_int_equal(ot_dict_set_int(list, "0", 1), OT_OK);
    assert_int_equal(ot_dict_set_int(list, "1", 2), OT_OK);
    assert_int_equal(ot_dict_remove(list, "0"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "value '0' of a list is not the last of 2");
    assert_int_equal(ot_dict_remove(list, "1"), OT_OK);
    assert_int_equal(ot_dict_count(list), 1);
    ot_dict_destroy(dict);
}

static void shards_are_views_of_memory_or_have_their_own(void **state)
{
    float memory[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const ot_shards *shards;
    ot_tensor *parts[2];
    ot_dict *dict;

    (void)state;
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(2, 3), memory, 24, &parts[0]), OT_OK);
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(1, 3), memory + 6, 12, &parts[1]), OT_OK);
    assert_int_equal(ot_dict_take_shards(dict, "w", OT_F64, &OT_SHAPE(5, 3), rows, parts, 2),
                     OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "part 0 is f32[2,3], expected f64[2,3]");
    assert_int_equal(ot_dict_take_shards(dict, "w", OT_F32, &OT_SHAPE(5, 3), rows, parts, 2),
                     OT_OK);
    assert_int_equal(ot_dict_get_shards(dict, "w", &shards), OT_OK);
    assert_ptr_equal(ot_tensor_data(shards->parts[1]), memory + 6);
    assert_int_equal(ot_dict_take_shards(dict, "v", OT_F32, &OT_SHAPE(4, 3), rows, NULL, 2),
                     OT_ERR_INVALID); // beyond the shape
    assert_int_equal(ot_dict_take_shards(dict, "v", OT_F32, &OT_SHAPE(5, 3),
                                         (const ot_box[]){rows[0], rows[0]}, NULL, 2),
                     OT_ERR_INVALID); // the same twice
    assert_int_equal(ot_dict_take_shards(dict, "v", OT_U4, &OT_SHAPE(5, 3), rows, NULL, 2),
                     OT_ERR_UNSUPPORTED);
    assert_int_equal(ot_dict_take_shards(dict, "v", OT_F32, &OT_SHAPE(5, 3), NULL, NULL, 0), OT_OK);
    assert_int_equal(ot_dict_count(dict), 2);
    ot_dict_destroy(dict);
}

static void every_allocation_of_lists_and_shards_may_fail(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n++) {
        ot_dict *dict;

        ot__alloc_fail_after(n);
        st = ot_dict_create(&dict);
        OT_THEN(st, fill_with_shards(dict));
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot_dict_destroy(dict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back_in_the_order_in_which_they_were_set),
        cmocka_unit_test(what_is_missing_or_of_another_kind_is_told),
        cmocka_unit_test(a_value_is_replaced_in_its_place_and_others_move_up_when_one_goes),
        cmocka_unit_test(a_deep_tree_is_destroyed),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(lists_bytes_and_shards_come_back),
        cmocka_unit_test(a_list_has_the_numbers_of_its_values_as_names),
        cmocka_unit_test(shards_are_views_of_memory_or_have_their_own),
        cmocka_unit_test(every_allocation_of_lists_and_shards_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
