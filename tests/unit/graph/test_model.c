// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

static void a_new_model_has_an_empty_graph(void **state)
{
    ot_model *model;

    (void)state;
    assert_int_equal(ot__model_create(&model), OT_OK);
    assert_non_null(model->graph);
    assert_int_equal(model->graph->n_nodes, 0);
    assert_int_equal(ot_model_input_count(model), 0);
    assert_null(ot_model_output_name(model, 0));
    ot_model_destroy(model);
    ot_model_destroy(NULL);
}

static void opsets_are_found_under_both_names_of_the_default_domain(void **state)
{
    ot_model *model;

    (void)state;
    assert_int_equal(ot__model_create(&model), OT_OK);
    assert_int_equal(ot__model_set_opset(model, "ai.onnx", 17), OT_OK);
    assert_int_equal(ot__model_set_opset(model, "com.microsoft", 1), OT_OK);
    assert_int_equal(ot__model_opset(model, ""), 17);
    assert_int_equal(ot__model_opset(model, "ai.onnx"), 17);
    assert_int_equal(ot__model_opset(model, "other"), 0);
    assert_int_equal(ot__model_set_opset(model, "", 18), OT_OK);
    assert_int_equal(ot__model_opset(model, "ai.onnx"), 18);
    assert_int_equal(model->n_opsets, 2);
    ot_model_destroy(model);
}

static void initializers_do_not_count_as_inputs(void **state)
{
    ot_model *model = model_of("g (float[2] x, float[2] w = {1,2}, float[2] z) => (float[2] y) {"
                               " y = Sum (x, w, z) }");

    (void)state;
    assert_int_equal(ot_model_input_count(model), 2);
    assert_string_equal(ot_model_input_name(model, 0), "x");
    assert_string_equal(ot_model_input_name(model, 1), "z");
    assert_null(ot_model_input_name(model, 2));
    assert_null(ot_model_input_name(model, -1));
    assert_int_equal(ot_model_output_count(model), 1);
    assert_string_equal(ot_model_output_name(model, 0), "y");
    ot_model_destroy(model);
}

static void values_tell_their_type_and_shape(void **state)
{
    ot_model *model = model_of("g (float[N,3] x, int64[] any) => (y) { y = Op (x, any) }");
    ot_dtype dtype;
    ot_shape shape;

    (void)state;
    assert_int_equal(ot_model_value_info(model, "x", &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F32);
    assert_int_equal(shape.ndim, 2);
    assert_int_equal(shape.dim[0], -1);
    assert_int_equal(shape.dim[1], 3);
    assert_int_equal(ot_model_value_info(model, "any", &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_I64);
    assert_int_equal(shape.ndim, -1);
    assert_int_equal(ot_model_value_info(model, "none", &dtype, &shape), OT_ERR_NOT_FOUND);
    assert_message_has("no value 'none'");
    ot_model_destroy(model);
}

static void new_constants_are_zero_and_aligned(void **state)
{
    ot_model *model;
    const ot_tensor *tensor;

    (void)state;
    assert_int_equal(ot__model_create(&model), OT_OK);
    tensor = ot__model_tensor_new(model, OT_F32, &OT_SHAPE(3));
    assert_non_null(tensor);
    assert_int_equal(tensor->n_bytes, 12);
    assert_int_equal((uintptr_t)tensor->data % 64, 0);
    assert_true(ot__tensor_get_f64(tensor, 2) == 0.0);
    assert_null(ot__model_tensor_new(model, OT_F32, &OT_SHAPE(INT64_MAX, 2)));
    assert_null(ot__model_tensor_new(model, OT_F32, &OT_SHAPE(-1)));
    ot_model_destroy(model);
}

static void what_a_model_holds_lives_as_long_as_it(void **state)
{
    ot_model *model, *clone;
    ot_tensor *tensor;

    (void)state; // leaks and early releases are the sanitizer's to find
    assert_int_equal(ot__model_create(&model), OT_OK);
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(2), &tensor), OT_OK);
    ((float *)tensor->data)[1] = 7;
    assert_int_equal(ot__model_hold_tensor(model, tensor), OT_OK);
    assert_int_equal(ot__model_clone(model, &clone), OT_OK);
    ot_model_destroy(model);
    assert_true(ot__tensor_get_f64(tensor, 1) == 7.0);
    ot_model_destroy(clone);
}

static void creating_a_model_survives_every_failing_allocation(void **state)
{
    ot_model *model;
    int64_t n = 0;
    ot_status st;

    (void)state;
    do {
        ot__alloc_fail_after(n++);
        st = ot__model_create(&model);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && !model));
    } while (st != OT_OK);
    assert_true(n > 2);
    ot_model_destroy(model);
}

static void initializers_are_listed_and_copied(void **state)
{
    ot_model *model = model_of("g (float[2] x, float[2] a) => (float[2] y)"
                               " <float[2] a = {1, 2}, string[1] s = {\"t\"}> { y = Add (x, a) }");
    ot_tensor *tensor;

    (void)state;
    assert_int_equal(ot_model_initializer_count(model), 2);
    assert_string_equal(ot_model_initializer_name(model, 0), "a");
    assert_null(ot_model_initializer_name(model, 2));
    assert_null(ot_model_initializer_name(model, -1));
    assert_int_equal(ot_model_get_initializer(model, "a", &tensor), OT_OK);
    ((float *)ot_tensor_data(tensor))[1] = 7;
    assert_true(ot__tensor_get_f64(ot__graph_find(model->graph, "a")->constant, 1) == 2);
    ot_tensor_destroy(tensor);
    assert_int_equal(ot_model_get_initializer(model, "x", &tensor), OT_ERR_NOT_FOUND);
    assert_null(tensor);
    assert_int_equal(ot_model_get_initializer(model, "s", &tensor), OT_ERR_UNSUPPORTED);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_model_has_an_empty_graph),
        cmocka_unit_test(opsets_are_found_under_both_names_of_the_default_domain),
        cmocka_unit_test(initializers_do_not_count_as_inputs),
        cmocka_unit_test(initializers_are_listed_and_copied),
        cmocka_unit_test(values_tell_their_type_and_shape),
        cmocka_unit_test(new_constants_are_zero_and_aligned),
        cmocka_unit_test(what_a_model_holds_lives_as_long_as_it),
        cmocka_unit_test(creating_a_model_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
