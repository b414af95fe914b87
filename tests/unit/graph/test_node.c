// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

static ot_model *empty(void)
{
    ot_model *model;

    assert_int_equal(ot__model_create(&model), OT_OK);
    return model;
}

static void a_node_is_the_producer_of_its_outputs(void **state)
{
    ot_model *model = empty();
    ot_graph *g = model->graph;
    ot_value *x = ot__graph_value(g, "x"), *y = ot__graph_value(g, "y");
    ot_value *outputs[] = {NULL, y};
    ot_node *node = ot__graph_add_node(g, "ai.onnx", "Op", NULL, &x, 1, outputs, 2);

    (void)state;
    assert_non_null(node);
    assert_ptr_equal(y->producer, node);
    assert_int_equal(y->i_producer_output, 1);
    assert_string_equal(node->domain, "");
    assert_string_equal(node->name, "");
    assert_ptr_equal(ot__graph_value(g, "y"), y);
    ot_model_destroy(model);
}

static void labels_name_the_node_or_what_it_makes(void **state)
{
    ot_model *model =
        model_of("g (float x) => (float y) { [fc1] h = Gemm (x) y = Relu (h) = Out (y) }");
    char label[64];

    (void)state;
    assert_string_equal(ot__node_label(model->graph->nodes[0], label, sizeof label), "Gemm 'fc1'");
    assert_string_equal(ot__node_label(model->graph->nodes[1], label, sizeof label), "Relu of 'y'");
    assert_string_equal(ot__node_label(model->graph->nodes[2], label, sizeof label), "Out");
    ot_model_destroy(model);
}

static void new_values_have_names_that_nothing_has(void **state)
{
    ot_model *model = model_of("g (bool c, float x) => (float y) { x_1 = Neg (x)"
                               " y = If (c) <then_branch = t () => (x_2) { x_2 = Neg (x_1) }> }");

    (void)state;
    assert_string_equal(ot__graph_new_value(model->graph, "new")->name, "new");
    assert_string_equal(ot__graph_new_value(model->graph, "x")->name, "x_3");
    assert_string_equal(ot__graph_new_value(model->graph, "x")->name, "x_4");
    assert_string_equal(ot__graph_new_value(model->graph, "")->name, "_1");
    ot_model_destroy(model);
}

static void attributes_replace_those_of_their_name(void **state)
{
    ot_model *model = model_of("g (float x) => (float y) { y = Op <a = 1> (x) }");
    ot_node *node = model->graph->nodes[0];
    const int64_t axes[] = {3, 4};

    (void)state;
    assert_true(ot__node_set_float(node, "a", 0.5f));
    assert_true(ot__node_set_ints(node, "axes", axes, 2));
    assert_true(ot__node_set_string(node, "mode", "fast"));
    assert_int_equal(node->n_attrs, 3);
    assert_int_equal(ot__node_attr(node, "a")->kind, OT_ATTR_FLOAT);
    assert_true(ot__node_attr(node, "a")->f == 0.5f);
    assert_int_equal(ot__node_attr(node, "axes")->ints[1], 4);
    assert_int_equal(ot__node_attr(node, "mode")->s.size, 4);
    ot__node_remove_attr(node, "a");
    assert_null(ot__node_attr(node, "a"));
    assert_int_equal(node->n_attrs, 2);
    assert_null(ot__node_attr(node, "none"));
    ot_model_destroy(model);
}

static void many_attributes_are_all_kept(void **state)
{
    ot_model *model = model_of("g (float x) => (float y) { y = Op (x) }");
    ot_node *node = model->graph->nodes[0];
    char name[16];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "a%d", i);
        assert_true(ot__node_set_int(node, name, i));
    }
    for (int i = 0; i < 100; i += 2) {
        snprintf(name, sizeof name, "a%d", i);
        ot__node_remove_attr(node, name);
    }
    assert_true(ot__node_set_int(node, "last", 7));
    assert_int_equal(node->n_attrs, 51);
    assert_int_equal(ot__node_attr(node, "a99")->i, 99);
    assert_int_equal(ot__node_attr(node, "last")->i, 7);
    ot_model_destroy(model);
}

static void copied_attributes_bring_their_subgraphs(void **state)
{
    ot_model *model = model_of("g (bool c, float x) => (float y, float z) {"
                               " y = If (c) <then_branch = t () => (a) { a = Neg (x) }, k = 2>"
                               " z = Other (x) }");
    ot_node *from = maker(model, "y"), *to = maker(model, "z");
    const ot_graph *copy;

    (void)state;
    assert_true(ot__node_copy_attrs(to, from));
    assert_int_equal(ot__node_attr(to, "k")->i, 2);
    copy = ot__node_attr(to, "then_branch")->g;
    assert_ptr_not_equal(copy, ot__node_attr(from, "then_branch")->g);
    assert_ptr_equal(copy->parent, model->graph);
    assert_ptr_equal(copy->nodes[0]->inputs[0], ot__graph_find(model->graph, "x"));
    assert_int_equal(ot__graph_verify(model->graph), OT_OK);
    ot_model_destroy(model);
}

static void names_are_seen_from_inner_graphs(void **state)
{
    ot_model *model = empty();
    ot_value *x = ot__graph_value(model->graph, "x");
    const ot_graph *inner = ot__graph_create(model, model->graph, "inner");

    (void)state;
    assert_null(ot__graph_find(inner, "x"));
    assert_ptr_equal(ot__graph_find_visible(inner, "x"), x);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_the_producer_of_its_outputs),
        cmocka_unit_test(labels_name_the_node_or_what_it_makes),
        cmocka_unit_test(new_values_have_names_that_nothing_has),
        cmocka_unit_test(attributes_replace_those_of_their_name),
        cmocka_unit_test(many_attributes_are_all_kept),
        cmocka_unit_test(copied_attributes_bring_their_subgraphs),
        cmocka_unit_test(names_are_seen_from_inner_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
