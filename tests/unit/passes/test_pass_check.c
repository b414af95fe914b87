// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

static void unknown_operators_are_all_named_in_one_message(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17, \"com.acme\" : 1]>"
                                "g (float[2] x) => (float[2] y) {"
                                "  a = Foo(x) b = com.acme.Bar(a) c = Foo(b) y = Relu(c) }");

    (void)state;
    assert_fails(ot__pass_check(model), OT_ERR_UNSUPPORTED, "2 operators are not supported");
    assert_non_null(strstr(ot_error_message(), "Foo (opset 17)"));
    assert_non_null(strstr(ot_error_message(), "com.acme.Bar"));
    ot_model_destroy(model);
}

static void unknown_operators_are_listed_once_for_reports(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[2] x) => (float[2] y) { a = Foo(x) y = Foo(a) }");
    ot__buf lines = {0};

    (void)state;
    assert_ok(ot__pass_unknown_operators(model, &lines));
    assert_string_equal(lines.data, "Foo (opset 17)\n");
    ot__buf_deinit(&lines);
    ot_model_destroy(model);
}

static void graphs_below_opset_13_are_raised_to_13(void **state)
{
    ot_model *model = read_text("<ir_version: 4, opset_import: [\"\" : 9]>"
                                "g (float[2] x) => (float[2] y) { y = Clip<min = 0.5>(x) }");
    const ot_node *clip;

    (void)state;
    assert_ok(ot__pass_check(model));
    assert_int_equal(ot__model_opset(model, ""), 13);
    assert_int_equal(model->ir_version, 7);
    clip = find_node(model, "Clip");
    assert_null(ot__node_attr(clip, "min"));
    assert_int_equal(clip->n_inputs, 2);
    assert_true(ot__tensor_get_f64(clip->inputs[1]->constant, 0) == 0.5);
    ot_model_destroy(model);
}

static void constants_of_raised_nodes_have_the_type_of_what_they_stand_beside(void **state)
{
    ot_model *model = read_text("<ir_version: 4, opset_import: [\"\" : 9]>"
                                "g (double[2] x) => (double[2] y)"
                                "{ a = Relu(x) y = Clip<min = 0.5>(a) }");

    (void)state;
    assert_ok(ot__pass_check(model));
    assert_int_equal(find_node(model, "Clip")->inputs[1]->dtype, OT_F64);
    ot_model_destroy(model);
}

static void a_missing_opset_import_is_named(void **state)
{
    ot_model *model =
        read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                  "g (float[2] x) => (float[2] y) { y = com.microsoft.ReluGrad(x, x) }");

    (void)state;
    assert_fails(ot__pass_check(model), OT_ERR_FORMAT, "imports no opset of domain com.microsoft");
    ot_model_destroy(model);
}

static void an_opset_newer_than_all_known_is_refused(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 999]>"
                                "g (float[2] x) => (float[2] y) { y = Relu(x) }");

    (void)state;
    assert_fails(ot__pass_check(model), OT_ERR_UNSUPPORTED, "opset 999");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_operators_are_all_named_in_one_message),
        cmocka_unit_test(unknown_operators_are_listed_once_for_reports),
        cmocka_unit_test(graphs_below_opset_13_are_raised_to_13),
        cmocka_unit_test(constants_of_raised_nodes_have_the_type_of_what_they_stand_beside),
        cmocka_unit_test(a_missing_opset_import_is_named),
        cmocka_unit_test(an_opset_newer_than_all_known_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
