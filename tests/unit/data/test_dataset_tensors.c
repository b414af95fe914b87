// SPDX-License-Identifier: Apache-2.0
#include "data/data.h"
#include "evaluate.h"

static ot_tensor *wrap(ot_dtype dtype, ot_shape shape, void *data, size_t n_bytes)
{
    ot_tensor *tensor;

    assert_ok(ot_tensor_wrap(dtype, &shape, data, n_bytes, &tensor));
    return tensor;
}

static void batches_read_the_rows_of_tensors_in_memory(void **state)
{
    static const char *const names[] = {"x", "labels"};
    double x[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    int32_t labels[3] = {2, 0, 1};
    ot_tensor *tensors[] = {wrap(OT_F64, OT_SHAPE(3, 2), x, sizeof x),
                            wrap(OT_I32, OT_SHAPE(3), labels, sizeof labels)};
    const ot_binding bindings[] = {
        {.input = "x", .dtype = OT_F32, .shape = OT_SHAPE(2), .fields = "x", .scale = 10},
        {.input = "labels", .dtype = OT_I64, .fields = "labels", .scale = 1, .is_class = 1},
    };
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    const ot_tensor *batch[2];
    ot_dataset *dataset;
    ot_batches *batches;

    (void)state;
    options.batch_size = 2;
    assert_ok(ot_dataset_from_tensors(names, (const ot_tensor *const *)tensors, 2, &dataset));
    assert_int_equal(ot_dataset_rows(dataset), 3);
    assert_ok(ot_batches_create(dataset, bindings, 2, &options, &batches));
    assert_ok(ot_batches_next(batches, batch, 2));
    assert_ok(ot_batches_next(batches, batch, 2));
    assert_int_equal(ot_tensor_shape(batch[0])->dim[0], 1);
    assert_true(((const float *)ot_tensor_data_const(batch[0]))[1] == 60.0f);
    assert_int_equal(((const int64_t *)ot_tensor_data_const(batch[1]))[0], 1);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
    ot_tensor_destroy(tensors[0]);
    ot_tensor_destroy(tensors[1]);
}

static void tensors_that_are_no_rows_are_refused(void **state)
{
    static const char *const names[] = {"a", "b"};
    float values[6] = {0};
    ot_tensor *tensors[] = {wrap(OT_F32, OT_SHAPE(3, 2), values, sizeof values),
                            wrap(OT_F32, OT_SHAPE(2, 3), values, sizeof values)};
    ot_tensor *scalar = wrap(OT_F32, OT_SHAPE_SCALAR, values, sizeof(float));
    ot_tensor *complex = wrap(OT_C64, OT_SHAPE(3), values, sizeof values);
    ot_dataset *dataset;

    (void)state;
    assert_fails(ot_dataset_from_tensors(names, (const ot_tensor *const *)tensors, 2, &dataset),
                 OT_ERR_INVALID, "field 'b' has 2 rows, others have 3");
    assert_null(dataset);
    assert_fails(ot_dataset_from_tensors(names, (const ot_tensor *const *)&scalar, 1, &dataset),
                 OT_ERR_INVALID, "array 'a' has no axis of rows");
    assert_fails(ot_dataset_from_tensors(names, (const ot_tensor *const *)&complex, 1, &dataset),
                 OT_ERR_UNSUPPORTED, "array 'a' is c64, expected real numbers");
    ot_tensor_destroy(complex);
    assert_fails(ot_dataset_from_tensors(names, NULL, 0, &dataset), OT_ERR_INVALID, "no array");
    ot_tensor_destroy(tensors[0]);
    ot_tensor_destroy(tensors[1]);
    ot_tensor_destroy(scalar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_read_the_rows_of_tensors_in_memory),
        cmocka_unit_test(tensors_that_are_no_rows_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
