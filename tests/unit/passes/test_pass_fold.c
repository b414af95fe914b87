// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

static void nodes_of_constant_inputs_become_constants(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> {"
                                    "  d = Constant<value = float[2] {10, 20}>()"
                                    "  s = Add(c, d)"
                                    "  y = Mul(x, s) }");
    const ot_value *s;

    (void)state;
    assert_ok(ot__pass_fold(model, 0));
    assert_int_equal(model->graph->n_nodes, 1);
    s = find_value(model, "s");
    assert_null(s->producer);
    assert_true(ot__tensor_get_f64(s->constant, 0) == 11.0);
    assert_true(ot__tensor_get_f64(s->constant, 1) == 22.0);
    ot_model_destroy(model);
}

static void what_depends_on_an_input_stays(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}>"
                                    "{ s = Add(c, x) y = Mul(x, s) }");

    (void)state;
    assert_ok(ot__pass_fold(model, 0));
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

static void outputs_of_the_graph_keep_their_node(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g () => (float[2] y) <float[2] c = {1, 2}> { y = Neg(c) }");

    (void)state;
    assert_ok(ot__pass_fold(model, 0));
    assert_int_equal(model->graph->n_nodes, 1);
    ot_model_destroy(model);
}

static void values_above_the_limit_are_left_as_nodes(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}>"
                                    "{ s = Neg(c) y = Mul(x, s) }");

    (void)state;
    assert_ok(ot__pass_fold(model, 7));
    assert_int_equal(model->graph->n_nodes, 2);
    assert_ok(ot__pass_fold(model, 8));
    assert_int_equal(model->graph->n_nodes, 1);
    ot_model_destroy(model);
}

static void the_shape_of_a_static_value_is_a_constant(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2, 5] x) => (float[a, b] y)"
                                    "{ s = Shape(x) y = Expand(x, s) }");

    (void)state;
    assert_ok(ot__pass_fold(model, 0));
    assert_int_equal(model->graph->n_nodes, 1);
    assert_int_equal(ot__tensor_get_i64(find_value(model, "s")->constant, 1), 5);
    ot_model_destroy(model);
}

static void the_shape_of_a_dynamic_value_is_not(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[N, 5] x) => (float[N, 5] y)"
                                    "{ s = Shape(x) y = Expand(x, s) }");

    (void)state;
    assert_ok(ot__pass_fold(model, 0));
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

// The newer exporter writes scales as CastLike(constant, data).
static void data_whose_type_alone_is_read_stops_nothing(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2] x) => (float[2] y)"
                                    "{ c = Constant<value = double {2.25}>() l = CastLike(c, x)"
                                    "  r = Sqrt(l) y = Mul(x, r) }");

    (void)state;
    assert_ok(ot__pass_fold(model, 0));
    assert_int_equal(model->graph->n_nodes, 1);
    assert_int_equal(find_value(model, "r")->constant->dtype, OT_F32);
    assert_float_equal(ot__tensor_get_f64(find_value(model, "r")->constant, 0), 1.5, 0);
    ot_model_destroy(model);
}

static void random_operators_are_never_folded(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2] x) => (float[2] y)"
                                    "<float[2] c = {1, 2}, float r = {0.5}, bool t = {1}>"
                                    "{ d = Dropout(c, r, t) y = Add(x, d) }");

    (void)state;
    assert_ok(ot__pass_fold(model, 0));
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_constant_inputs_become_constants),
        cmocka_unit_test(what_depends_on_an_input_stays),
        cmocka_unit_test(outputs_of_the_graph_keep_their_node),
        cmocka_unit_test(values_above_the_limit_are_left_as_nodes),
        cmocka_unit_test(the_shape_of_a_static_value_is_a_constant),
        cmocka_unit_test(the_shape_of_a_dynamic_value_is_not),
        cmocka_unit_test(data_whose_type_alone_is_read_stops_nothing),
        cmocka_unit_test(random_operators_are_never_folded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
