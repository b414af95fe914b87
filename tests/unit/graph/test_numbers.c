// SPDX-License-Identifier: Apache-2.0
// Numbers of values and nodes, and what a numbering knows.
#include "unit/graph/model_text.h"

static const ot_value *value(const ot_model *model, const char *name)
{
    return ot__graph_find(model->graph, name);
}

static void values_are_numbered_once_in_the_order_of_mention(void **state)
{
    static const char *const order[] = {"c", "x", "a"};
    ot_model *model = model_of("g (bool c, float x) => (float y) { a = Add (x, x)"
                               " y = If (c) <then_branch = t () => (r) { r = Add (x, a) }> }");
    ot__numbers numbers;

    (void)state;
    assert_int_equal(ot__numbers_build(model->graph, &numbers), OT_OK);
    assert_int_equal(numbers.n_values, 5);
    for (int v = 0; v < 3; v++)
        assert_string_equal(numbers.values[v]->name, order[v]);
    assert_int_equal(ot__value_number(&numbers, value(model, "a")), 2);
    assert_int_equal(numbers.n_nodes, 2);
    assert_int_equal(ot__node_number(&numbers, maker(model, "y")), 1);
    assert_ptr_equal(numbers.nodes[0], maker(model, "a"));
    ot__numbers_deinit(&numbers);
    ot_model_destroy(model);
}

static void what_is_made_later_is_unknown_until_it_is_added(void **state)
{
    enum { N = 200 };
    ot_model *model = model_of("g (float x) => (float y) { y = Neg (x) }");
    ot_value *made[N];
    ot__numbers numbers;

    (void)state;
    assert_int_equal(ot__numbers_build(model->graph, &numbers), OT_OK);
    for (int i = 0; i < N; i++) {
        made[i] = ot__graph_new_value(model->graph, "z");
        assert_non_null(made[i]);
        assert_false(ot__has_number(&numbers, made[i]));
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(ot__numbers_add(&numbers, made[i]), OT_OK);
        assert_int_equal(ot__numbers_add(&numbers, made[i]), OT_OK);
        assert_int_equal(ot__value_number(&numbers, made[i]), 2 + i);
    }
    assert_int_equal(ot__value_number(&numbers, value(model, "x")), 0);
    ot__numbers_deinit(&numbers);
    ot_model_destroy(model);
}

static void a_later_numbering_takes_over(void **state)
{
    ot_model *model = model_of("g (float w, float x) => (float y) { y = Neg (x) }");
    const ot_value *x = value(model, "x");
    ot__numbers before, after = {0};

    (void)state;
    assert_int_equal(ot__numbers_build(model->graph, &before), OT_OK);
    assert_int_equal(ot__value_number(&before, x), 1);
    assert_int_equal(ot__numbers_add(&after, model->graph->inputs[1]), OT_OK);
    assert_int_equal(ot__value_number(&after, x), 0);
    assert_false(ot__has_number(&before, x));
    assert_true(ot__has_number(&before, value(model, "w")));
    assert_false(ot__has_number(&after, value(model, "w")));
    ot__numbers_deinit(&before);
    ot__numbers_deinit(&after);
    ot_model_destroy(model);
}

static void nodes_of_a_new_list_get_their_places(void **state)
{
    ot_model *model = model_of("g (float x) => (float y) { a = Neg (x) y = Abs (a) }");
    ot_graph *graph = model->graph;
    const ot_node *first = graph->nodes[0];
    ot__numbers numbers;

    (void)state;
    assert_int_equal(ot__numbers_build(graph, &numbers), OT_OK);
    graph->nodes[0] = graph->nodes[1];
    graph->n_nodes = 1;
    assert_int_equal(ot__numbers_set_nodes(&numbers, graph), OT_OK);
    assert_int_equal(ot__node_number(&numbers, graph->nodes[0]), 0);
    assert_false(ot__has_node_number(&numbers, first));
    assert_int_equal(ot__value_number(&numbers, value(model, "a")), 1);
    ot__numbers_deinit(&numbers);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_numbered_once_in_the_order_of_mention),
        cmocka_unit_test(what_is_made_later_is_unknown_until_it_is_added),
        cmocka_unit_test(a_later_numbering_takes_over),
        cmocka_unit_test(nodes_of_a_new_list_get_their_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
