// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

#define HEADER "<ir_version: 9, opset_import: [\"\" : 18, \"local\" : 1]> "
#define LOCAL " <domain: \"local\", opset_import: [\"\" : 18]> "

static ot_model *inlined(const char *text)
{
    ot_model *model = model_of(text);

    if (ot__model_inline_functions(model) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(model->n_functions, 0);
    assert_int_equal(ot__graph_verify(model->graph), OT_OK);
    return model;
}

// "Mul(x,k)" for a node
static const char *shown(const ot_node *node)
{
    static char text[128];
    size_t n = (size_t)snprintf(text, sizeof text, "%s(", node->op_type);

    for (int i = 0; i < node->n_inputs; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "," : "",
                              node->inputs[i] ? node->inputs[i]->name : "-");
    snprintf(text + n, sizeof text - n, ")");
    return text;
}

static void assert_refused(const char *text, ot_status status, const char *message)
{
    ot_model *model = model_of(text);

    assert_int_equal(ot__model_inline_functions(model), status);
    assert_message_has(message);
    ot_model_destroy(model);
}

static void a_call_is_replaced_by_the_body(void **state)
{
    ot_model *model =
        inlined(HEADER "g (float x) => (float y) { h = Neg (x) y = local.f (h) }" LOCAL
                       "f (a) => (b) { t = Abs (a) b = Mul (t, a) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 3);
    assert_string_equal(shown(model->graph->nodes[1]), "Abs(h)");
    assert_string_equal(shown(model->graph->nodes[2]), "Mul(t,h)");
    assert_ptr_equal(maker(model, "y"), model->graph->nodes[2]);
    ot_model_destroy(model);
}

static void inner_values_of_two_calls_are_different(void **state)
{
    ot_model *model =
        inlined(HEADER "g (float t) => (float y) { h = local.f (t) y = local.f (h) }" LOCAL
                       "f (a) => (b) { t = Abs (a) b = Neg (t) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 4);
    assert_string_equal(shown(model->graph->nodes[0]), "Abs(t)"); // the graph's own t
    assert_string_equal(shown(model->graph->nodes[1]), "Neg(t_1)");
    assert_string_equal(shown(model->graph->nodes[3]), "Neg(t_2)");
    ot_model_destroy(model);
}

static void attributes_come_from_the_call_or_the_default(void **state)
{
    ot_model *model = inlined(
        HEADER "g (float x) => (float y) { h = local.f <alpha = 2.0> (x) y = local.f (h) }" LOCAL
               "f <alpha: float = 3.0, gone> (a) => (b) { b = Op <alpha: float = @alpha, none: int "
               "= @gone> (a) }");

    (void)state;
    assert_true(ot__node_attr(maker(model, "h"), "alpha")->f == 2.0f);
    assert_true(ot__node_attr(maker(model, "y"), "alpha")->f == 3.0f);
    assert_null(ot__node_attr(maker(model, "y"), "none"));
    assert_null(ot__node_attr(maker(model, "y"), "alpha")->ref_name);
    ot_model_destroy(model);
}

static void an_attribute_of_another_kind_is_refused(void **state)
{
    (void)state;
    assert_refused(HEADER "g (float x) => (float y) { y = local.f <alpha = 2> (x) }" LOCAL
                          "f <alpha> (a) => (b) { b = Op <alpha: float = @alpha> (a) }",
                   OT_ERR_FORMAT, "attribute 'alpha' has kind 1, but 'alpha' has kind 2");
}

static void functions_call_functions(void **state)
{
    ot_model *model = inlined(
        HEADER "g (float x) => (float y) { [call] y = local.outer <k = 5> (x) }" LOCAL
               "outer <k> (a) => (b) { [in] t = local.inner <n: int = @k> (a) b = Neg (t) }" LOCAL
               "inner <n> (c) => (d) { [leaf] d = Op <n: int = @n> (c) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    assert_string_equal(model->graph->nodes[0]->name, "call/in/leaf");
    assert_int_equal(ot__node_attr(model->graph->nodes[0], "n")->i, 5);
    ot_model_destroy(model);
}

static void overloads_are_told_apart(void **state)
{
    ot_model *model =
        inlined(HEADER "g (float x) => (float y) { h = local.f:one (x) y = local.f:two (h) }"
                       " <domain: \"local\", overload: \"one\", opset_import: [\"\" : 18]> f (a) "
                       "=> (b) { b = One (a) }"
                       " <domain: \"local\", overload: \"two\", opset_import: [\"\" : 18]> f (a) "
                       "=> (b) { b = Two (a) }");

    (void)state;
    assert_string_equal(maker(model, "h")->op_type, "One");
    assert_string_equal(maker(model, "y")->op_type, "Two");
    ot_model_destroy(model);
}

static void inputs_left_out_stay_left_out(void **state)
{
    ot_model *model =
        inlined(HEADER "g (float x) => (float y) { h = local.f (x) y = local.f (h, \"\", x) }" LOCAL
                       "f (a, low, high) => (b) { b = Clip (a, low, high) }");

    (void)state;
    assert_string_equal(shown(maker(model, "h")), "Clip(x,-,-)");
    assert_string_equal(shown(maker(model, "y")), "Clip(h,-,x)");
    ot_model_destroy(model);
}

static void an_output_that_is_an_input_is_copied(void **state)
{
    ot_model *model =
        inlined(HEADER "g (float x) => (float y, float z) { y, z = local.f (x) }" LOCAL
                       "f (a) => (a, b) { b = Neg (a) }");

    (void)state;
    assert_string_equal(shown(maker(model, "y")), "Identity(x)");
    assert_string_equal(shown(maker(model, "z")), "Neg(x)");
    ot_model_destroy(model);
}

static void an_output_that_is_an_omitted_input_is_refused(void **state)
{
    (void)state;
    assert_refused(HEADER "g (float x) => (float y, float z) { y, z = local.f () }" LOCAL
                          "f (a) => (a, b) { b = Op (a) }",
                   OT_ERR_FORMAT,
                   "leaves out input 'a', which the function gives back as output 0");
}

static void subgraphs_of_functions_see_their_values(void **state)
{
    ot_model *model =
        inlined(HEADER "g (bool c, float x) => (float y) { y = local.f (c, x) }" LOCAL
                       "f (cond, a) => (b) { t = Neg (a)"
                       " b = If (cond) <then_branch = th () => (r) { r = local.h (t) }> }" LOCAL
                       "h (p) => (q) { q = Abs (p) }");
    const ot_node *branch = maker(model, "y");
    const ot_graph *inner = ot__node_attr(branch, "then_branch")->g;

    (void)state;
    assert_string_equal(shown(branch), "If(c)");
    assert_string_equal(shown(inner->nodes[0]), "Abs(t)");
    assert_ptr_equal(inner->parent, model->graph);
    ot_model_destroy(model);
}

static void calls_in_subgraphs_are_replaced(void **state)
{
    ot_model *model =
        inlined(HEADER "g (bool c, float x) => (float y) {"
                       " y = If (c) <then_branch = t () => (r) { r = local.f (x) }> }" LOCAL
                       "f (a) => (b) { b = Abs (a) }");
    const ot_graph *inner = ot__node_attr(maker(model, "y"), "then_branch")->g;

    (void)state;
    assert_string_equal(shown(inner->nodes[0]), "Abs(x)");
    ot_model_destroy(model);
}

static void opsets_that_only_functions_import_are_added(void **state)
{
    ot_model *model =
        inlined("<ir_version: 9, opset_import: [\"local\" : 1]> g (float x) => (float y) { y = "
                "local.f (x) }"
                " <domain: \"local\", opset_import: [\"\" : 18]> f (a) => (b) { b = Abs (a) }");

    (void)state;
    assert_int_equal(ot__model_opset(model, ""), 18);
    ot_model_destroy(model);
}

static void recursion_is_refused(void **state)
{
    (void)state;
    assert_refused(HEADER "g (float x) => (float y) { y = local.f (x) }" LOCAL
                          "f (a) => (b) { b = local.h (a) }" LOCAL
                          "h (a) => (b) { b = local.f (a) }",
                   OT_ERR_FORMAT, "calls itself");
}

static void two_definitions_are_refused(void **state)
{
    (void)state;
    assert_refused(HEADER "g (float x) => (float y) { y = local.f (x) }" LOCAL
                          "f (a) => (b) { b = Abs (a) }" LOCAL "f (a) => (b) { b = Neg (a) }",
                   OT_ERR_FORMAT, "function 'f' is defined twice");
}

static void too_many_inputs_are_refused(void **state)
{
    (void)state;
    assert_refused(HEADER "g (float x) => (float y) { y = local.f (x, x) }" LOCAL
                          "f (a) => (b) { b = Abs (a) }",
                   OT_ERR_FORMAT, "has 2 inputs, but the function takes 1");
}

static void growth_without_bound_is_refused(void **state)
{
    char text[8192] = HEADER "g (float x) => (float y) { y = local.f0 (x) }";
    size_t n = strlen(text);

    (void)state;
    for (int i = 0; i < 40; i++) // each calls the next twice: 2^40 nodes
        n += (size_t)snprintf(text + n, sizeof text - n,
                              LOCAL "f%d (a) => (b) { t = local.f%d (a) b = local.f%d (t) }", i,
                              i + 1, i + 1);
    snprintf(text + n, sizeof text - n, LOCAL "f40 (a) => (b) { b = Abs (a) }");
    assert_refused(text, OT_ERR_NO_MEMORY, "inlining functions makes more than 1000000 nodes");
}

static void inlining_survives_every_failing_allocation(void **state)
{
    int64_t n = 0;
    ot_status st;

    (void)state;
    do {
        ot_model *model = model_of(
            HEADER "g (float x) => (float y) { h = local.f <k = 1> (x) y = local.f (h) }" LOCAL
                   "f <k> (a) => (b) { t = Op <k: int = @k> (a) b = Neg (t) }");

        ot__alloc_fail_after(n++);
        st = ot__model_inline_functions(model);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot_model_destroy(model);
    } while (st != OT_OK);
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_replaced_by_the_body),
        cmocka_unit_test(inner_values_of_two_calls_are_different),
        cmocka_unit_test(attributes_come_from_the_call_or_the_default),
        cmocka_unit_test(an_attribute_of_another_kind_is_refused),
        cmocka_unit_test(functions_call_functions),
        cmocka_unit_test(overloads_are_told_apart),
        cmocka_unit_test(inputs_left_out_stay_left_out),
        cmocka_unit_test(an_output_that_is_an_input_is_copied),
        cmocka_unit_test(an_output_that_is_an_omitted_input_is_refused),
        cmocka_unit_test(subgraphs_of_functions_see_their_values),
        cmocka_unit_test(calls_in_subgraphs_are_replaced),
        cmocka_unit_test(opsets_that_only_functions_import_are_added),
        cmocka_unit_test(recursion_is_refused),
        cmocka_unit_test(two_definitions_are_refused),
        cmocka_unit_test(too_many_inputs_are_refused),
        cmocka_unit_test(growth_without_bound_is_refused),
        cmocka_unit_test(inlining_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
