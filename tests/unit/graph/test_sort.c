// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "unit/graph/model_text.h"

// Puts node `from` at position `to`.
static void move_node(ot_graph *graph, int from, int to)
{
    ot_node *node = graph->nodes[from];

    for (int i = from; i < to; i++)
        graph->nodes[i] = graph->nodes[i + 1];
    for (int i = from; i > to; i--)
        graph->nodes[i] = graph->nodes[i - 1];
    graph->nodes[to] = node;
}

static void assert_order(const ot_graph *graph, const char *expected)
{
    char text[64] = "";

    for (int i = 0; i < graph->n_nodes; i++)
        strcat(text, graph->nodes[i]->outputs[0]->name);
    assert_string_equal(text, expected);
}

static const char *const diamond =
    "g (float x) => (float d) { a = Neg (x) b = Neg (a) c = Abs (a) d = Add (b, c) }";

static void a_sorted_graph_stays_as_it_is(void **state)
{
    ot_model *model = model_of(diamond);

    (void)state;
    assert_int_equal(ot__graph_sort(model->graph), OT_OK);
    assert_order(model->graph, "abcd");
    ot_model_destroy(model);
}

static void producers_come_before_their_readers(void **state)
{
    ot_model *model = model_of(diamond);

    (void)state;
    move_node(model->graph, 0, 3); // b c d a
    assert_int_equal(ot__graph_sort(model->graph), OT_OK);
    assert_order(model->graph, "abcd");
    assert_int_equal(ot__graph_verify(model->graph), OT_OK);
    ot_model_destroy(model);
}

static void what_a_subgraph_reads_comes_before_its_node(void **state)
{
    ot_model *model = model_of("g (bool c, float x) => (float y) { a = Neg (x)"
                               " y = If (c) <then_branch = t () => (r) { r = Abs (a) }> }");

    (void)state;
    move_node(model->graph, 0, 1);
    assert_int_equal(ot__graph_sort(model->graph), OT_OK);
    assert_order(model->graph, "ay");
    ot_model_destroy(model);
}

static void a_cycle_is_an_error_that_names_a_node_on_it(void **state)
{
    ot_model *model = model_of("g (float x) => (float y) { a = Neg (x) [in] b = Add (a, x) [out] c "
                               "= Neg (b) y = Neg (c) }");

    (void)state;
    maker(model, "b")->inputs[1] = ot__graph_find(model->graph, "c");
    assert_int_equal(ot__graph_sort(model->graph), OT_ERR_FORMAT);
    assert_message_has("depends on its own output");
    if (!strstr(ot_error_message(), "'in'") && !strstr(ot_error_message(), "'out'"))
        fail_msg("%s", ot_error_message());
    ot_model_destroy(model);
}

static void uses_are_in_node_order_and_count_subgraphs(void **state)
{
    ot_model *model = model_of("g (bool c, float x) => (float y) { a = Add (x, x)"
                               " y = If (c) <then_branch = t () => (r) { r = Add (x, a) }> }");
    const ot_value *x = ot__graph_find(model->graph, "x"), *y = ot__graph_find(model->graph, "y");
    ot__uses uses;
    const ot__use *use;

    (void)state;
    assert_int_equal(ot__uses_build(model->graph, &uses), OT_OK);
    assert_int_equal(ot__uses_count(&uses, x), 3);
    assert_int_equal(ot__uses_count(&uses, y), 0);
    use = &uses.use[ot__uses_first(&uses, x)];
    assert_int_equal(use[0].i_input, 0);
    assert_int_equal(use[1].i_input, 1);
    assert_int_equal(use[2].i_input, -1);
    assert_ptr_equal(use[2].node, y->producer);
    assert_ptr_equal(uses.numbers.values[ot__value_number(&uses.numbers, x)], x);
    ot__uses_deinit(&uses);
    ot_model_destroy(model);
}

// One node in 65,536 places of the list, of 32,769 inputs each: more uses than an int can count.
static void more_uses_than_can_be_numbered_are_refused(void **state)
{
    enum { N_NODES = 1 << 16, N_INPUTS = (1 << 15) + 1 };
    ot_model *model = model_of("g (float x) => (float y) { y = Neg (x) }");
    ot_node many = *model->graph->nodes[0];
    ot_graph graph = *model->graph;
    ot__uses uses;

    (void)state;
    many.inputs = calloc(N_INPUTS, sizeof(ot_value *));
    graph.nodes = calloc(N_NODES, sizeof(ot_node *));
    assert_non_null(many.inputs);
    assert_non_null(graph.nodes);
    many.n_inputs = N_INPUTS;
    graph.n_nodes = N_NODES;
    for (int i = 0; i < N_NODES; i++)
        graph.nodes[i] = &many;
    for (int i = 0; i < N_INPUTS; i++)
        many.inputs[i] = graph.inputs[0];
    assert_int_equal(ot__uses_build(&graph, &uses), OT_ERR_UNSUPPORTED);
    assert_message_has("in more than 2147483646 places");
    free(many.inputs);
    free(graph.nodes);
    ot_model_destroy(model);
}

static void sorting_survives_every_failing_allocation(void **state)
{
    ot_model *model = model_of(diamond);
    int64_t n = 0;
    ot_status st;

    (void)state;
    move_node(model->graph, 0, 3);
    do {
        ot__alloc_fail_after(n++);
        st = ot__graph_sort(model->graph);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
    } while (st != OT_OK);
    assert_true(n > 4);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sorted_graph_stays_as_it_is),
        cmocka_unit_test(producers_come_before_their_readers),
        cmocka_unit_test(what_a_subgraph_reads_comes_before_its_node),
        cmocka_unit_test(a_cycle_is_an_error_that_names_a_node_on_it),
        cmocka_unit_test(uses_are_in_node_order_and_count_subgraphs),
        cmocka_unit_test(more_uses_than_can_be_numbered_are_refused),
        cmocka_unit_test(sorting_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
