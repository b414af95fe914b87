// SPDX-License-Identifier: Apache-2.0
// Nodes are written by a builder, which keeps the first error.
#include "op/op.h"
#include "unit/graph/model_text.h"

typedef struct told {
    ot__builder build; // first
    int n;
    ot_status status;
} told;

static void tell(ot__builder *build)
{
    told *t = (told *)build;

    t->n++;
    t->status = build->status;
}

static void nothing_is_done_after_the_first_error(void **state)
{
    ot_model *model = model_of("g (float x) => (float y) { y = Neg (x) }");
    told t = {.build = {.graph = model->graph, .failed = tell}};
    ot_value *x = ot__graph_find(model->graph, "x"), *y;

    (void)state;
    y = ot__build_value(&t.build, "z");
    assert_non_null(y);
    assert_false(ot__build_note(&t.build, ot__error(OT_ERR_INVALID, "first")));
    assert_false(ot__build_note(&t.build, OT_ERR_STATE));
    assert_false(ot__build_made(&t.build, true));
    assert_null(ot__build_value(&t.build, "w"));
    assert_null(ot__build_initializer(&t.build, "c", OT_F32, &OT_SHAPE(1)));
    assert_null(ot__build_node(&t.build, "com.microsoft", "Gelu", "n", &x, 1, &y, 1));
    ot__build_output(&t.build, x);
    ot__build_int(&t.build, NULL, "axis", 1);
    assert_int_equal(t.build.status, OT_ERR_INVALID);
    assert_int_equal(t.status, OT_ERR_INVALID);
    assert_int_equal(t.n, 1);
    assert_int_equal(model->graph->n_nodes, 1);
    assert_int_equal(model->graph->n_outputs, 1);
    assert_int_equal(ot__model_opset(model, "com.microsoft"), 0);
    assert_null(ot__graph_find(model->graph, "w"));
    ot_model_destroy(model);
}

static void a_node_has_its_domain_its_record_and_its_types(void **state)
{
    ot_model *model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Neg (x) }");
    ot__builder b = {.graph = model->graph};
    ot_value *x = ot__graph_find(model->graph, "x"), *z = ot__build_value(&b, "x");
    ot_node *node = ot__op_build(&b, "com.microsoft", "Gelu", "n", &x, 1, &z, 1);

    (void)state;
    assert_non_null(node);
    assert_non_null(node->op);
    assert_string_equal(z->name, "x_1");
    assert_int_equal(ot__model_opset(model, "com.microsoft"), 1);
    assert_int_equal(z->kind, OT_VALUE_UNTYPED);
    ot__op_settle(&b, node);
    assert_int_equal(b.status, OT_OK);
    assert_int_equal(z->dtype, OT_F32);
    assert_int_equal(z->shape.dim[1], 3);
    ot_model_destroy(model);
}

static void a_wrong_node_is_told_when_it_is_settled(void **state)
{
    ot_model *model = model_of("g (float[2,3] x) => (float[2,3] y) { y = Neg (x) }");
    ot__builder b = {.graph = model->graph};
    ot_value *x = ot__graph_find(model->graph, "x"), *z = ot__build_value(&b, "z");
    ot_node *node = ot__op_build(&b, "", "Relu", "n", &x, 1, &z, 1);

    (void)state;
    ot__build_int(&b, node, "nothing", 1);
    assert_int_equal(b.status, OT_OK);
    ot__op_settle(&b, node);
    assert_int_equal(b.status, OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "unknown attribute 'nothing'"));
    assert_null(ot__op_build(&b, "", "Relu", "m", &x, 1, &z, 1));
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_done_after_the_first_error),
        cmocka_unit_test(a_node_has_its_domain_its_record_and_its_types),
        cmocka_unit_test(a_wrong_node_is_told_when_it_is_settled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
