// SPDX-License-Identifier: Apache-2.0
#include "unit/onnx/wire_build.h"

static void assert_tensor_refused(const message *w, ot_status status, const char *part)
{
    const message m = model_with_initializer(w);

    assert_refused(&m, status, part);
}

// ---- what every storage gives ----

static void typed_fields_and_raw_bytes_give_the_same_elements(void **state)
{
    ot_model *model = NULL;
    int n_types = 0;

    (void)state; // the file is made by the onnx package, see make_data.py
    assert_int_equal(ot_model_load(OT_TEST_DIR "/data/storage.onnx", NULL, &model), OT_OK);
    for (int i = 0; i < model->graph->n_initializers; i += 2) {
        const ot_value *typed = model->graph->initializers[i];
        const ot_value *raw = model->graph->initializers[i + 1];

        assert_true(ot__starts_with(typed->name, "typed_") && ot__starts_with(raw->name, "raw_"));
        assert_string_equal(typed->name + 6, raw->name + 4);
        assert_int_equal(typed->constant->dtype, raw->constant->dtype);
        assert_int_equal(typed->constant->n_bytes, raw->constant->n_bytes);
        if (memcmp(typed->constant->data, raw->constant->data, raw->constant->n_bytes) != 0)
            fail_msg("%s differs from its raw bytes", typed->name);
        n_types++;
    }
    assert_int_equal(n_types, 27); // all but strings
    ot_model_destroy(model);
}

static void strings_may_be_empty_and_hold_any_byte(void **state)
{
    const int64_t dims[] = {3};
    message w = tensor("w", OT_STRING, 1, dims), m;
    const ot__string *strings;
    ot_model *out;

    (void)state;
    put_text(&w, 6, "one");
    put_text(&w, 6, "");
    put_bytes(&w, 6, "\0\xff", 2);
    m = model_with_initializer(&w);
    out = read_message(&m);
    strings = ot__graph_find(out->graph, "w")->constant->data;
    assert_int_equal(strings[0].size, 3);
    assert_memory_equal(strings[0].data, "one", 3);
    assert_int_equal(strings[1].size, 0);
    assert_memory_equal(strings[2].data, "\0\xff", 2);
    ot_model_destroy(out);
}

static void unpacked_numbers_are_read_too(void **state)
{
    const int64_t dims[] = {2};
    message w = tensor("w", OT_I64, 1, dims), m;
    ot_model *out;

    (void)state;
    put_int(&w, 7, -5);
    put_int(&w, 7, 6);
    m = model_with_initializer(&w);
    out = read_message(&m);
    assert_int_equal(ot__tensor_get_i64(ot__graph_find(out->graph, "w")->constant, 0), -5);
    assert_int_equal(ot__tensor_get_i64(ot__graph_find(out->graph, "w")->constant, 1), 6);
    ot_model_destroy(out);
}

static void elements_are_aligned_wherever_they_lie_in_the_file(void **state)
{
    const int64_t dims[] = {2};

    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        message w = tensor("w", OT_F64, 1, dims), m;
        const ot_tensor *constant;
        ot_model *out;

        put_bytes(&w, 12, "12345678", shift);
        put_bytes(&w, 9, (double[]){1.5, -2.5}, 16);
        m = model_with_initializer(&w);
        out = read_message(&m);
        constant = ot__graph_find(out->graph, "w")->constant;
        assert_int_equal((uintptr_t)constant->data % 8, 0);
        assert_true(ot__tensor_get_f64(constant, 1) == -2.5);
        ot_model_destroy(out);
    }
}

// ---- what is refused ----

static void raw_data_of_the_wrong_length_is_refused(void **state)
{
    const int64_t dims[] = {2, 3};
    message w = tensor("w", OT_F32, 2, dims);

    (void)state;
    put_bytes(&w, 9, "12345678901234567890", 20);
    assert_tensor_refused(&w, OT_ERR_FORMAT, "tensor 'w': raw_data has 20 bytes, expected 24");
}

static void a_typed_field_of_the_wrong_length_is_refused(void **state)
{
    const int64_t dims[] = {2};
    message w = tensor("w", OT_F32, 1, dims);

    (void)state;
    put_bytes(&w, 4, (float[]){1, 2, 3}, 12);
    assert_tensor_refused(&w, OT_ERR_FORMAT,
                          "tensor 'w': float_data has 3 entries, expected 2 for f32");
}

static void elements_in_a_field_of_another_type_are_refused(void **state)
{
    const int64_t dims[] = {1};
    message w = tensor("w", OT_I64, 1, dims);

    (void)state;
    put_bytes(&w, 4, (float[]){1}, 4);
    assert_tensor_refused(&w, OT_ERR_FORMAT, "int64_data has 0 entries, expected 1 for i64");
}

static void no_elements_at_all_are_refused(void **state)
{
    const int64_t dims[] = {2};
    const message w = tensor("w", OT_F32, 1, dims);

    (void)state;
    assert_tensor_refused(&w, OT_ERR_FORMAT, "float_data has 0 entries, expected 2");
}

static void elements_in_two_places_are_refused(void **state)
{
    const int64_t dims[] = {1};
    message w = tensor("w", OT_F32, 1, dims);

    (void)state;
    put_bytes(&w, 4, (float[]){1}, 4);
    put_bytes(&w, 9, (float[]){1}, 4);
    assert_tensor_refused(&w, OT_ERR_FORMAT, "elements are in raw_data and in another field");
}

static void a_number_that_does_not_fit_its_type_is_refused(void **state)
{
    const int64_t dims[] = {2};
    message w = tensor("w", OT_U8, 1, dims);

    (void)state;
    put_int(&w, 5, 255);
    put_int(&w, 5, 256);
    assert_tensor_refused(&w, OT_ERR_FORMAT, "entry 1, 256, does not fit u8");
}

static void negative_extents_are_refused(void **state)
{
    const int64_t dims[] = {2, -1};
    const message w = tensor("w", OT_F32, 2, dims);

    (void)state;
    assert_tensor_refused(&w, OT_ERR_FORMAT, "tensor 'w': size -1 of axis 1 is negative");
}

static void sizes_that_overflow_are_refused(void **state)
{
    const int64_t many[] = {INT64_MAX, 2}, wide[] = {INT64_MAX / 4};
    const message w = tensor("w", OT_F32, 2, many), v = tensor("v", OT_C128, 1, wide);

    (void)state;
    assert_tensor_refused(&w, OT_ERR_FORMAT,
                          "shape [9223372036854775807,2] has more elements than can be counted");
    assert_tensor_refused(&v, OT_ERR_FORMAT, "no size in bytes");
}

static void a_huge_shape_without_elements_allocates_nothing(void **state)
{
    const int64_t dims[] = {INT64_C(1) << 40};
    const message w = tensor("w", OT_F32, 1, dims);

    (void)state;
    assert_tensor_refused(&w, OT_ERR_FORMAT, "float_data has 0 entries, expected 1099511627776");
}

static void more_axes_than_are_supported_are_refused(void **state)
{
    const int64_t dims[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const message w = tensor("w", OT_F32, 17, dims);

    (void)state;
    assert_tensor_refused(&w, OT_ERR_UNSUPPORTED, "17 axes, at most 16 are supported");
}

static void unknown_element_types_are_refused(void **state)
{
    const message w = tensor("w", 99, 0, NULL), v = tensor("v", 0, 0, NULL);

    (void)state;
    assert_tensor_refused(&w, OT_ERR_FORMAT, "tensor 'w': element type 99 is not known");
    assert_tensor_refused(&v, OT_ERR_FORMAT, "tensor 'v': element type 0 is not known");
}

static void raw_strings_are_refused(void **state)
{
    message w = tensor("w", OT_STRING, 0, NULL);

    (void)state;
    put_text(&w, 9, "raw");
    assert_tensor_refused(&w, OT_ERR_FORMAT, "strings cannot be raw bytes");
}

static void segments_are_refused(void **state)
{
    message w = tensor("w", OT_F32, 0, NULL), segment = {0};

    (void)state;
    put_int(&segment, 1, 0);
    put_message(&w, 3, &segment);
    assert_tensor_refused(&w, OT_ERR_UNSUPPORTED, "tensors in segments are not supported");
}

static void assert_sparse(const ot_model *model, const char *name, int first, int second)
{
    const ot_value *value = ot__graph_find(model->graph, name);
    float expected[12] = {0};

    expected[first] = 2.5f;
    expected[second] = -1.0f;
    assert_true(value->is_initializer);
    assert_int_equal(value->constant->n_bytes, sizeof expected);
    assert_memory_equal(value->constant->data, expected, sizeof expected);
}

static void sparse_initializers_become_dense(void **state)
{
    ot__buf bytes = {0};
    ot_model *model, *again;

    (void)state; // the file is made by the onnx package, see make_data.py
    assert_int_equal(ot_model_load(OT_TEST_DIR "/data/sparse.onnx", NULL, &model), OT_OK);
    assert_int_equal(model->graph->n_initializers, 2);
    assert_sparse(model, "linear", 3, 10);
    assert_sparse(model, "placed", 1, 2 * 4 + 3);
    assert_int_equal(ot__onnx_write(model, &bytes), OT_OK);
    assert_int_equal(ot_model_load_buffer(bytes.data, bytes.length, NULL, &again), OT_OK);
    assert_int_equal(again->graph->n_initializers, 2);
    assert_sparse(again, "placed", 1, 11);
    ot__buf_deinit(&bytes);
    ot_model_destroy(model);
    ot_model_destroy(again);
}

// SparseTensorProto: values, indices, dims.
static void sparse_initializers_are_checked(void **state)
{
    static const struct {
        int64_t index, extent;
        const char *part;
    } wrong[] = {{5, 5, "index 0 lies outside the tensor"},
                 {-1, 5, "index 0 lies outside the tensor"},
                 {0, INT64_MAX, "sparse initializer 's'"},
                 {0, INT64_C(1) << 40, "sparse initializer 's'"}};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(wrong); i++) {
        message values = {0}, indices = {0}, s = {0}, g = graph(), m;
        ot_model *out;

        put_int(&values, 1, 1);
        put_int(&values, 2, OT_F32);
        put_text(&values, 8, "s");
        put_bytes(&values, 9, "\0\0\200\77", 4);
        put_int(&indices, 1, 1);
        put_int(&indices, 2, OT_I64);
        put_bytes(&indices, 9, &wrong[i].index, 8);
        put_message(&s, 1, &values);
        put_message(&s, 2, &indices);
        put_int(&s, 3, wrong[i].extent);
        put_message(&g, 15, &s);
        m = model(&g);
        assert_true(ot__onnx_read(m.bytes, m.n, NULL, "test", NULL, &out) != OT_OK);
        assert_null(out);
        assert_message_has(wrong[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typed_fields_and_raw_bytes_give_the_same_elements),
        cmocka_unit_test(strings_may_be_empty_and_hold_any_byte),
        cmocka_unit_test(unpacked_numbers_are_read_too),
        cmocka_unit_test(elements_are_aligned_wherever_they_lie_in_the_file),
        cmocka_unit_test(raw_data_of_the_wrong_length_is_refused),
        cmocka_unit_test(a_typed_field_of_the_wrong_length_is_refused),
        cmocka_unit_test(elements_in_a_field_of_another_type_are_refused),
        cmocka_unit_test(no_elements_at_all_are_refused),
        cmocka_unit_test(elements_in_two_places_are_refused),
        cmocka_unit_test(a_number_that_does_not_fit_its_type_is_refused),
        cmocka_unit_test(negative_extents_are_refused),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(a_huge_shape_without_elements_allocates_nothing),
        cmocka_unit_test(more_axes_than_are_supported_are_refused),
        cmocka_unit_test(unknown_element_types_are_refused),
        cmocka_unit_test(raw_strings_are_refused),
        cmocka_unit_test(segments_are_refused),
        cmocka_unit_test(sparse_initializers_become_dense),
        cmocka_unit_test(sparse_initializers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
