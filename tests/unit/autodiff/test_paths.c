// SPDX-License-Identifier: Apache-2.0
#include "autodiff/autodiff.h"
#include "evaluate.h"

static const char several_ways[] = "<ir_version: 8, opset_import: [\"\" : 17]>"
                                   "g (float[2] x) => (float loss)"
                                   "<float[2] w = {1, 2}, float[2] floored = {1, 2}, float[2] low "
                                   "= {0, 0}, float[2] unused = {1, 2}> {"
                                   "  a = Mul(x, w)"
                                   "  [step] b = Floor(floored)"
                                   "  [cmp] c = Greater(a, low)"
                                   "  d = Where(c, a, b)"
                                   "  e = Relu(unused)"
                                   "  loss = ReduceSum<keepdims = 0>(d) }";

static ot__path_status path_by(ot_model *model, const char *name, ot__edge_rule *edge,
                               ot_node **blocker)
{
    ot_value *from = find_value(model, name);
    ot__path_status status;

    assert_ok(ot__autodiff_paths(model->graph, find_value(model, "loss"), &from, 1, edge, &status,
                                 blocker));
    return status;
}

static ot__path_status path_of(ot_model *model, const char *name, ot_node **blocker)
{
    return path_by(model, name, ot__edge_trains, blocker);
}

static void a_differentiable_path_is_ok(void **state)
{
    ot_model *model = read_prepared(several_ways);
    ot_node *blocker;

    (void)state;
    assert_int_equal(path_of(model, "w", &blocker), OT_PATH_OK);
    assert_null(blocker);
    ot_model_destroy(model);
}

static void a_value_that_leads_nowhere_has_no_path(void **state)
{
    ot_model *model = read_prepared(several_ways);
    ot_node *blocker;

    (void)state;
    assert_int_equal(path_of(model, "unused", &blocker), OT_PATH_NONE);
    ot_model_destroy(model);
}

static void an_operator_that_passes_on_no_gradient_stops_the_path(void **state)
{
    ot_model *model = read_prepared(several_ways);
    ot_node *blocker;

    (void)state;
    assert_int_equal(path_of(model, "floored", &blocker), OT_PATH_STOPPED);
    assert_string_equal(blocker->name, "step");
    assert_int_equal(path_of(model, "low", &blocker), OT_PATH_STOPPED);
    assert_string_equal(blocker->name, "cmp");
    ot_model_destroy(model);
}

// They have gradients, but train only by name.
static void running_statistics_stop_the_path_of_what_trains(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2,2] x) => (float loss) <float[2] w = {1, 2},"
                                    " float[2] scale = {1, 2}, float[2] var = {1, 2}> {"
                                    "  mean = Neg(w)"
                                    "  [norm] y = BatchNormalization(x, scale, w, mean, var)"
                                    "  loss = ReduceSum<keepdims = 0>(y) }");
    ot_node *blocker;

    (void)state;
    assert_int_equal(path_by(model, "var", ot__edge_passes, &blocker), OT_PATH_OK);
    assert_int_equal(path_by(model, "mean", ot__edge_passes, &blocker), OT_PATH_OK);
    assert_int_equal(path_of(model, "w", &blocker), OT_PATH_OK);
    assert_int_equal(path_of(model, "mean", &blocker), OT_PATH_STOPPED);
    assert_string_equal(blocker->name, "norm");
    assert_int_equal(path_of(model, "var", &blocker), OT_PATH_STOPPED);
    ot_model_destroy(model);
}

static void an_operator_without_a_rule_makes_the_path_unsupported(void **state)
{
    ot_model *model = read_prepared("<ir_version: 8, opset_import: [\"\" : 17]>"
                                    "g (float[2] x) => (float loss) <float[2] w = {1, 2}> {"
                                    "  [odd] a = Mul(x, w) loss = ReduceSum<keepdims = 0>(a) }");
    ot_node *odd = find_node(model, "Mul"), *blocker;
    ot_op_def record = *odd->op;

    (void)state;
    record.grad = NULL;
    odd->op = &record;
    assert_int_equal(path_of(model, "w", &blocker), OT_PATH_UNSUPPORTED);
    assert_ptr_equal(blocker, odd);
    ot_model_destroy(model);
}

static void a_target_that_no_operator_computes_is_refused(void **state)
{
    ot_model *model = read_prepared(several_ways);
    ot_value *from = find_value(model, "w");
    ot__path_status status;

    (void)state;
    assert_fails(ot__autodiff_paths(model->graph, find_value(model, "x"), &from, 1, ot__edge_passes,
                                    &status, NULL),
                 OT_ERR_INVALID, "'x' is computed by no operator");
    ot_model_destroy(model);
}

static void a_target_of_integers_is_refused(void **state)
{
    ot_model *model = read_prepared(several_ways);
    ot_value *from = find_value(model, "w");
    ot__path_status status;

    (void)state;
    assert_fails(ot__autodiff_paths(model->graph, find_value(model, "c"), &from, 1, ot__edge_passes,
                                    &status, NULL),
                 OT_ERR_INVALID, "'c' has element type bool");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_differentiable_path_is_ok),
        cmocka_unit_test(a_value_that_leads_nowhere_has_no_path),
        cmocka_unit_test(an_operator_that_passes_on_no_gradient_stops_the_path),
        cmocka_unit_test(running_statistics_stop_the_path_of_what_trains),
        cmocka_unit_test(an_operator_without_a_rule_makes_the_path_unsupported),
        cmocka_unit_test(a_target_that_no_operator_computes_is_refused),
        cmocka_unit_test(a_target_of_integers_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
