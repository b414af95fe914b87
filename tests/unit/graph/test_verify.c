// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

// A structure that the readers would refuse is made from a good one.
static ot_model *good(void)
{
    return model_of("g (float x, float z) => (float y) <float w = {1}> {"
                    " [first] a = Add (x, w) [second] b = Mul (a, z) [third] y = Neg (b) }");
}

static void assert_refused(ot_model *model, const char *message)
{
    assert_int_equal(ot__graph_verify(model->graph), OT_ERR_FORMAT);
    assert_message_has(message);
    ot_model_destroy(model);
}

static void a_good_graph_passes(void **state)
{
    ot_model *model = good();

    (void)state;
    assert_int_equal(ot__graph_verify(model->graph), OT_OK);
    assert_int_equal(ot__model_verify(model), OT_OK);
    ot_model_destroy(model);
}

static void a_value_that_nobody_makes_is_named(void **state)
{
    ot_model *model = good();

    (void)state;
    maker(model, "b")->inputs[1] = ot__graph_value(model->graph, "ghost");
    assert_refused(model, "Mul 'second': input 1, 'ghost', is not defined");
}

static void a_value_used_too_early_is_named_with_its_maker(void **state)
{
    ot_model *model = good();
    ot_node *first = model->graph->nodes[0];

    (void)state;
    model->graph->nodes[0] = model->graph->nodes[1];
    model->graph->nodes[1] = first;
    assert_refused(model, "Mul 'second': input 0, 'a', is used before Add 'first' defines it");
}

static void a_cycle_is_told_from_wrong_order(void **state)
{
    ot_model *model = good();

    (void)state;
    maker(model, "a")->inputs[1] = ot__graph_find(model->graph, "b");
    assert_refused(model, "depends on its own output");
}

static void an_output_that_nobody_makes_is_named(void **state)
{
    ot_model *model = good();

    (void)state;
    model->graph->outputs[0] = ot__graph_value(model->graph, "ghost");
    assert_refused(model, "output 'ghost' of graph 'g' is not defined");
}

static void a_model_may_give_one_value_twice(void **state)
{
    ot_model *model = good();

    (void)state;
    assert_true(ot__graph_add_output(model->graph, model->graph->outputs[0]));
    assert_int_equal(ot__model_verify(model), OT_OK);
    ot_model_destroy(model);
}

static void an_input_listed_twice_is_named(void **state)
{
    ot_model *model = good();

    (void)state;
    assert_true(ot__graph_add_input(model->graph, model->graph->inputs[0]));
    assert_refused(model, "input 'x' of graph 'g' is defined twice");
}

static void a_value_made_twice_is_named(void **state)
{
    ot_model *model = good();
    ot_value *a = ot__graph_find(model->graph, "a");

    (void)state;
    assert_non_null(ot__graph_add_node(model->graph, "", "Neg", "", &a, 1, &a, 1));
    assert_int_not_equal(ot__graph_verify(model->graph), OT_OK);
    ot_model_destroy(model);
}

static void a_producer_that_does_not_know_its_output_is_an_internal_error(void **state)
{
    ot_model *model = good();

    (void)state;
    ot__graph_find(model->graph, "a")->producer = maker(model, "y");
    assert_int_equal(ot__graph_verify(model->graph), OT_ERR_INTERNAL);
    assert_message_has("does not know Add 'first' as its producer");
    ot_model_destroy(model);
}

static void subgraphs_are_verified_with_what_they_see(void **state)
{
    ot_model *model = model_of("g (bool c, float x) => (float y) { h = Neg (x)"
                               " y = If (c) <then_branch = t () => (r) { r = Abs (h) }> }");
    ot_graph *inner = ot__node_attr(maker(model, "y"), "then_branch")->g;

    (void)state;
    assert_int_equal(ot__graph_verify(model->graph), OT_OK);
    inner->nodes[0]->inputs[0] = ot__graph_find(model->graph, "y");
    assert_refused(model, "depends on its own output");
}

static void a_folded_value_needs_no_producer(void **state)
{
    ot_model *model = good();
    ot_value *a = ot__graph_find(model->graph, "a");

    (void)state;
    ot__node_detach(a->producer);
    ot__graph_drop_detached(model->graph);
    a->constant = ot__model_tensor_new(model, OT_F32, &OT_SHAPE_SCALAR);
    assert_int_equal(ot__graph_verify(model->graph), OT_OK);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_graph_passes),
        cmocka_unit_test(a_value_that_nobody_makes_is_named),
        cmocka_unit_test(a_value_used_too_early_is_named_with_its_maker),
        cmocka_unit_test(a_cycle_is_told_from_wrong_order),
        cmocka_unit_test(an_output_that_nobody_makes_is_named),
        cmocka_unit_test(a_model_may_give_one_value_twice),
        cmocka_unit_test(an_input_listed_twice_is_named),
        cmocka_unit_test(a_value_made_twice_is_named),
        cmocka_unit_test(a_producer_that_does_not_know_its_output_is_an_internal_error),
        cmocka_unit_test(subgraphs_are_verified_with_what_they_see),
        cmocka_unit_test(a_folded_value_needs_no_producer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
