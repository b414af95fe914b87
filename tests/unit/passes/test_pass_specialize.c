// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

static const char flatten_by_arithmetic[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[N, 3, 4] x, float[N] w) => (float[N, K] y)"
    "<int64 zero = {0}, int64[1] axis = {0}, int64[1] rest = {-1}> {"
    "  s = Shape(x) n = Gather<axis = 0>(s, zero) m = Unsqueeze(n, axis)"
    "  t = Concat<axis = 0>(m, rest) y = Reshape(x, t) }";

static void shape_arithmetic_is_gone_and_shapes_are_numbers(void **state)
{
    ot_model *model = read_prepared(flatten_by_arithmetic);
    const ot_shape shapes[] = {OT_SHAPE(7, 3, 4), OT_SHAPE(7)};
    const ot_value *y;

    (void)state;
    assert_ok(ot__pass_specialize(model, shapes, 2));
    assert_int_equal(model->graph->n_nodes, 1);
    y = find_value(model, "y");
    assert_int_equal(y->shape.dim[0], 7);
    assert_int_equal(y->shape.dim[1], 12);
    ot_model_destroy(model);
}

static void declared_numbers_beside_symbols_stay(void **state)
{
    // A pool's stride leaves open what extent its input had.
    ot_model *model =
        read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                      "g (float[N, 1, 2] dy, int64[N, 1, 2] at) => (float[N, 1, 5] dx)"
                      "{ dx = MaxPoolGrad<kernel_shape = [2], strides = [2]>(dy, at) }");
    const ot_shape shapes[] = {OT_SHAPE(3, 1, 2), OT_SHAPE(3, 1, 2)};
    const ot_value *dx;

    (void)state;
    assert_ok(ot__pass_specialize(model, shapes, 2));
    dx = find_value(model, "dx");
    assert_int_equal(dx->shape.dim[0], 3);
    assert_int_equal(dx->shape.dim[2], 5);
    ot_model_destroy(model);
}

static void inputs_that_disagree_on_a_symbol_are_named(void **state)
{
    ot_model *model = read_prepared(flatten_by_arithmetic);
    const ot_shape shapes[] = {OT_SHAPE(7, 3, 4), OT_SHAPE(8)};

    (void)state;
    assert_fails(ot__pass_specialize(model, shapes, 2), OT_ERR_INVALID,
                 "input 'w': axis 0 ('N') has size 8, but 7 in input 'x'");
    ot_model_destroy(model);
}

static void one_name_on_other_axes_refuses_no_data(void **state)
{
    // Some exporters call every open axis the same.
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[N, N, 2] x, float[M, N] w) => (float[N, N, 2] y)"
                                    "{ y = Relu(x) }");
    const ot_shape shapes[] = {OT_SHAPE(7, 3, 2), OT_SHAPE(7, 5)};
    const ot_value *y;

    (void)state;
    assert_ok(ot__pass_specialize(model, shapes, 2));
    y = find_value(model, "y");
    assert_int_equal(y->shape.dim[0], 7);
    assert_int_equal(y->shape.dim[1], 3);
    ot_model_destroy(model);
}

static void an_extent_that_contradicts_the_declared_one_is_refused(void **state)
{
    ot_model *model = read_prepared(flatten_by_arithmetic);
    const ot_shape shapes[] = {OT_SHAPE(7, 3, 5), OT_SHAPE(7)};

    (void)state;
    assert_fails(ot__pass_specialize(model, shapes, 2), OT_ERR_INVALID,
                 "input 'x': axis 2 has size 5, expected 4");
    ot_model_destroy(model);
}

static void another_number_of_axes_is_refused(void **state)
{
    ot_model *model = read_prepared(flatten_by_arithmetic);
    const ot_shape shapes[] = {OT_SHAPE(7, 12), OT_SHAPE(7)};

    (void)state;
    assert_fails(ot__pass_specialize(model, shapes, 2), OT_ERR_INVALID,
                 "input 'x' has shape [7,12], expected [N,3,4]");
    ot_model_destroy(model);
}

static void another_number_of_inputs_is_refused(void **state)
{
    ot_model *model = read_prepared(flatten_by_arithmetic);
    const ot_shape shapes[] = {OT_SHAPE(7, 3, 4)};

    (void)state;
    assert_fails(ot__pass_specialize(model, shapes, 1), OT_ERR_INVALID,
                 "1 input shapes for 2 inputs");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_arithmetic_is_gone_and_shapes_are_numbers),
        cmocka_unit_test(declared_numbers_beside_symbols_stay),
        cmocka_unit_test(inputs_that_disagree_on_a_symbol_are_named),
        cmocka_unit_test(one_name_on_other_axes_refuses_no_data),
        cmocka_unit_test(an_extent_that_contradicts_the_declared_one_is_refused),
        cmocka_unit_test(another_number_of_axes_is_refused),
        cmocka_unit_test(another_number_of_inputs_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
