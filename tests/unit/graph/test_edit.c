// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

static void removing_a_node_leaves_its_outputs_without_a_producer(void **state)
{
    ot_model *model = model_of("g (float x) => (float y) { h = Neg (x) y = Abs (h) }");
    const ot_value *h = ot__graph_find(model->graph, "h");

    (void)state;
    ot__node_detach(maker(model, "h"));
    ot__graph_drop_detached(model->graph);
    assert_int_equal(model->graph->n_nodes, 1);
    assert_null(h->producer);
    assert_int_equal(ot__graph_verify(model->graph), OT_ERR_FORMAT);
    assert_message_has("input 0, 'h', is not defined");
    ot_model_destroy(model);
}

static void subgraphs_of_all_attributes_are_walked_in_turn(void **state)
{
    ot_model *model = model_of("g (bool c, float x) => (float y) { y = If (c) <"
                               "then_branch = t () => (a) { a = Abs (x) }, note = 1,"
                               "else_branch = e () => (b) { b = Neg (x) }> }");
    ot__subgraphs s = {.node = maker(model, "y")};

    (void)state;
    assert_true(ot__next_subgraph(&s));
    assert_string_equal(s.graph->outputs[0]->name, "a");
    assert_true(ot__next_subgraph(&s));
    assert_string_equal(s.graph->outputs[0]->name, "b");
    assert_false(ot__next_subgraph(&s));
    assert_false(ot__next_subgraph(&s));
    ot_model_destroy(model);
}

static void pruning_drops_what_no_output_needs(void **state)
{
    ot_model *model =
        model_of("g (float x) => (float y) <float a = {1}, float b = {2}> {"
                 " unused = Neg (b) also_unused = Abs (unused) h = Add (x, a) y = Abs (h) }");

    (void)state;
    assert_int_equal(ot__graph_prune(model->graph, NULL), OT_OK);
    assert_int_equal(model->graph->n_nodes, 2);
    assert_int_equal(model->graph->n_initializers, 1);
    assert_null(ot__graph_find(model->graph, "unused"));
    assert_null(ot__graph_find(model->graph, "b"));
    assert_int_equal(ot__graph_verify(model->graph), OT_OK);
    ot_model_destroy(model);
}

static bool is_print(const ot_node *node)
{
    return strcmp(node->op_type, "Print") == 0;
}

static void pruning_keeps_what_the_caller_wants_and_all_it_reads(void **state)
{
    ot_model *model = model_of("g (float x) => (float y) <float a = {1}> {"
                               " h = Add (x, a) p = Print (h) q = Neg (p) y = Abs (x) }");

    (void)state;
    assert_int_equal(ot__graph_prune(model->graph, is_print), OT_OK);
    assert_int_equal(model->graph->n_nodes, 3);
    assert_non_null(ot__graph_find(model->graph, "a"));
    assert_null(ot__graph_find(model->graph, "q"));
    ot_model_destroy(model);
}

static void pruning_keeps_what_subgraphs_read(void **state)
{
    ot_model *model =
        model_of("g (bool c, float x) => (float y) <float a = {1}, float b = {2}> { h = Neg (x)"
                 " y = If (c) <then_branch = t () => (r) { r = Add (h, a) dead = Add (h, b) }> }");

    (void)state;
    assert_int_equal(ot__graph_prune(model->graph, NULL), OT_OK);
    assert_int_equal(model->graph->n_nodes, 2);
    assert_non_null(ot__graph_find(model->graph, "a"));
    assert_null(ot__graph_find(model->graph, "b")); // only the dead inner node read it
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removing_a_node_leaves_its_outputs_without_a_producer),
        cmocka_unit_test(subgraphs_of_all_attributes_are_walked_in_turn),
        cmocka_unit_test(pruning_drops_what_no_output_needs),
        cmocka_unit_test(pruning_keeps_what_the_caller_wants_and_all_it_reads),
        cmocka_unit_test(pruning_keeps_what_subgraphs_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
