// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

static int n_seen;
static char last_seen[32];

static void observe(const ot_model *model, const char *pass)
{
    assert_non_null(model);
    n_seen++;
    snprintf(last_seen, sizeof last_seen, "%s", pass);
}

static void preparing_sorts_resolves_and_infers(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[N, 3] x, float[3] w) => (float[M, 3] z)"
                                "{ y = Add(x, w) z = Relu(y) }");
    ot_node *first = model->graph->nodes[0];
    const ot_value *y;

    (void)state;
    model->graph->nodes[0] = model->graph->nodes[1]; // readers refuse what stands in this order
    model->graph->nodes[1] = first;
    assert_ok(ot__pass_prepare(model));
    assert_string_equal(model->graph->nodes[0]->op_type, "Add");
    assert_non_null(model->graph->nodes[1]->op);
    y = find_value(model, "y");
    assert_int_equal(y->dtype, OT_F32);
    assert_int_equal(y->shape.ndim, 2);
    assert_string_equal(ot__dim_name(model, y->shape.dim[0]), "N");
    assert_int_equal(y->shape.dim[1], 3);
    ot_model_destroy(model);
}

static void model_local_functions_are_inlined(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>"
                                "g (float[2] x) => (float[2] y) { y = local.twice(x) }"
                                "<domain: \"local\", opset_import: [\"\" : 17]>"
                                "twice (a) => (b) { b = Add(a, a) }");

    (void)state;
    assert_ok(ot__pass_prepare(model));
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(model->graph->nodes[0]->op_type, "Add");
    ot_model_destroy(model);
}

static void the_observer_sees_every_pass(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[2] x) => (float[2] y) { y = Relu(x) }");

    (void)state;
    n_seen = 0;
    ot__pass_set_observer(observe);
    assert_ok(ot__pass_prepare(model));
    ot__pass_set_observer(NULL);
    assert_int_equal(n_seen, 4);
    assert_string_equal(last_seen, "prepare");
    ot_model_destroy(model);
}

static void shapes_that_do_not_fit_are_an_error_naming_the_node(void **state)
{
    ot_model *model =
        read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                  "g (float[2] x, float[3] w) => (float[2] y) { [sum] y = Add(x, w) }");

    (void)state;
    assert_fails(ot__pass_prepare(model), OT_ERR_INVALID, "sum");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preparing_sorts_resolves_and_infers),
        cmocka_unit_test(model_local_functions_are_inlined),
        cmocka_unit_test(the_observer_sees_every_pass),
        cmocka_unit_test(shapes_that_do_not_fit_are_an_error_naming_the_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
