// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"
#include "passes/fuse.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "

static const char *program_of(const ot_model *model)
{
    const ot_node *node = find_node(model, "ElementwiseChain");

    return node == NULL ? "" : ot_attr_string(node, "program");
}

// Fuses a copy and checks that y stays the same.
static ot_model *fuse(const char *text)
{
    static const double numbers[12] = {-2, -1.5, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 3, 4};
    ot_model *model = read_prepared(text), *fused = read_prepared(text);
    evaluation before = {0}, after = {0};

    assert_ok(ot__fuse_elementwise(fused));
    assert_ok(ot__graph_verify(fused->graph));
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        feed(&before, x->name, new_tensor(x->dtype, x->shape, numbers));
        feed(&after, x->name, new_tensor(x->dtype, x->shape, numbers));
    }
    compute(&before, model);
    compute(&after, fused);
    for (int64_t k = 0; k < ot_tensor_count(result(&before, "y")); k++)
        assert_float_equal(element(&after, "y", k), element(&before, "y", k), 1e-6);
    evaluation_deinit(&before);
    evaluation_deinit(&after);
    ot_model_destroy(model);
    return fused;
}

static void a_line_of_nodes_becomes_one(void **state)
{
    ot_model *model = fuse(HEAD "g (float[3,4] a, float[4] b) => (float[3,4] y)"
                                "{ s = Add(a, b) t = LeakyRelu<alpha = 0.5>(s) y = Mul(t, a) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(program_of(model), "Add x0 x1; LeakyRelu[0.5] r0; Mul r1 x0");
    ot_model_destroy(model);
}

static void both_operands_may_be_chains(void **state)
{
    ot_model *model = fuse(HEAD "g (float[4] a, float[4] b) => (float[4] y)"
                                "{ s = Neg(a) t = Abs(b) y = Add(s, t) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    ot_model_destroy(model);
}

static void a_value_with_two_readers_is_kept(void **state)
{
    ot_model *model = fuse(HEAD "g (float[4] a) => (float[4] y, float[4] z)"
                                "{ s = Exp(a) y = Abs(s) z = Neg(s) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 3);
    ot_model_destroy(model);
}

// x / sqrt(2) of a GELU, which its gradient reads too: x is there anyway.
static void a_cheap_step_is_made_by_each_reader(void **state)
{
    ot_model *model = fuse(HEAD "g (float[3,4] a, float c) => (float[3,4] y, float[3,4] z)"
                                "{ s = Div(a, c) y = Erf(s) e = Mul(s, s) z = Exp(e) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    for (int n = 0; n < 2; n++)
        assert_string_equal(model->graph->nodes[n]->op_type, "ElementwiseChain");
    ot_model_destroy(model);
}

static void what_is_not_cheap_or_must_be_there_is_made_once(void **state)
{
    static const char *const graphs[] = {
        // two operands to read instead of one value
        HEAD "g (float[4] a, float[4] b) => (float[4] y, float[4] z)"
             "{ s = Add(a, b) y = Erf(s) z = Exp(s) }",
        // its reader is no chain
        HEAD "g (float[4] a) => (float[4] y, float[4] z) <int64 axis = {0}>"
             "{ s = Neg(a) y = Erf(s) z = CumSum(s, axis) }",
        // it is an output
        HEAD "g (float[4] a) => (float[4] y, float[4] z, float[4] s)"
             "{ s = Neg(a) y = Erf(s) z = Exp(s) }",
        // a reader of another shape
        HEAD "g (float[1] a, float[4] b) => (float[1] y, float[4] z)"
             "{ s = Neg(a) y = Erf(s) z = Div(s, b) }",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(graphs); i++) {
        ot_model *model = fuse(graphs[i]);

        assert_int_equal(model->graph->n_nodes, 3);
        ot_model_destroy(model);
    }
}

static void a_node_that_reads_a_value_twice_is_one_reader(void **state)
{
    ot_model *model = fuse(HEAD "g (float[4] a) => (float[4] y) { s = Neg(a) y = Mul(s, s) }");

    (void)state;
    assert_string_equal(program_of(model), "Neg x0; Mul r0 r0");
    ot_model_destroy(model);
}

static void an_output_of_the_graph_is_kept(void **state)
{
    ot_model *model = fuse(HEAD "g (float[4] a) => (float[4] s, float[4] y)"
                                "{ s = Neg(a) y = Abs(s) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

static void a_value_that_is_stretched_later_is_kept(void **state)
{
    ot_model *model = fuse(HEAD "g (float[3,4] a, float[4] b) => (float[3,4] y)"
                                "{ s = Neg(b) y = Add(a, s) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

static void other_operators_and_types_stay(void **state)
{
    ot_model *model = fuse(HEAD "g (float[4] a, double[4] d) => (float[4] y, double[4] z)"
                                "{ s = Neg(a) t = Softmax(s) y = Neg(t) u = Neg(d) z = Neg(u) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 5);
    ot_model_destroy(model);
}

static void omitted_inputs_are_said_so(void **state)
{
    ot_model *model = fuse(HEAD "g (float[4] a, float high) => (float[4] y)"
                                "{ s = Neg(a) y = Clip(s, , high) }");

    (void)state;
    assert_string_equal(program_of(model), "Neg x0; Clip r0 - x1");
    ot_model_destroy(model);
}

static void full_operands_come_first(void **state)
{
    ot_model *model = fuse(HEAD "g (float b, float[4] a) => (float[4] y)"
                                "{ s = Add(b, a) y = Neg(s) }");

    (void)state;
    assert_string_equal(program_of(model), "Add x1 x0; Neg r0");
    ot_model_destroy(model);
}

static void long_chains_are_cut(void **state)
{
    char text[2000];
    ot_model *model;
    int used = snprintf(text, sizeof(text), HEAD "g (float[4] v0) => (float[4] y) {");

    (void)state;
    for (int i = 0; i < 20; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, " v%d = Neg(v%d)", i + 1, i);
    snprintf(text + used, sizeof(text) - (size_t)used, " y = Neg(v20) }");
    model = fuse(text);
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_nodes_becomes_one),
        cmocka_unit_test(both_operands_may_be_chains),
        cmocka_unit_test(a_value_with_two_readers_is_kept),
        cmocka_unit_test(a_cheap_step_is_made_by_each_reader),
        cmocka_unit_test(what_is_not_cheap_or_must_be_there_is_made_once),
        cmocka_unit_test(a_node_that_reads_a_value_twice_is_one_reader),
        cmocka_unit_test(an_output_of_the_graph_is_kept),
        cmocka_unit_test(a_value_that_is_stretched_later_is_kept),
        cmocka_unit_test(other_operators_and_types_stay),
        cmocka_unit_test(omitted_inputs_are_said_so),
        cmocka_unit_test(full_operands_come_first),
        cmocka_unit_test(long_chains_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
