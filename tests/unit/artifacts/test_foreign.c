// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"

// Custom operators before the first parameter, beside it and behind the value that the loss takes.
#define MODEL(h)                                                                                   \
    "<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 3]> g (string[N, 2] words, float[N, 3] " \
    "x) => (float[N, 2] y, string[N] answer) <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = "   \
    "{0, 1}, float[3] k = {1, 2, 3}>"                                                              \
    "{ e = acme.Tokenize <mode = \"fast\"> (words, k)"                                             \
    "  n = Add(e, x)" h "  y = Gemm(h, w, b)"                                                      \
    "  answer = acme.Decode(y) }"
#define PLAIN MODEL("  h = Relu(n)")
#define ON_THE_WAY                                                                                 \
    "<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 3]> g (float[N, 3] x) => (float[N, 2] "  \
    "y) <float[3, 3] u = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3, 2] w = {1, 2, 3, 4, 5, 6}>"         \
    "{ a = MatMul(x, u) h = acme.Norm(a) y = MatMul(h, w) }"

static ot_status generate(const char *text, const char *const *trainable, int n_trainable,
                          ot_artifacts **out)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options mse = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_text(text);
    ot_status st;

    mse.loss = OT_LOSS_MSE;
    mse.input = "y";
    options.losses = &mse;
    options.n_losses = 1;
    options.trainable = trainable;
    options.n_trainable = n_trainable;
    st = ot_artifacts_generate(model, &options, out);
    ot_model_destroy(model);
    return st;
}

static const ot_node *node_of(const ot_model *model, const char *op_type)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        if (strcmp(model->graph->nodes[n]->op_type, op_type) == 0)
            return model->graph->nodes[n];
    return NULL;
}

static void nodes_of_unknown_operators_are_carried_unchanged(void **state)
{
    static const char *const gemm[] = {"w", "b"};
    const ot_model *models[2];
    ot_artifacts *artifacts;

    (void)state;
    assert_ok(generate(PLAIN, gemm, 2, &artifacts));
    models[0] = ot_artifacts_training_model(artifacts);
    models[1] = ot_artifacts_eval_model(artifacts);
    for (int i = 0; i < 2; i++) {
        const ot_node *node = node_of(models[i], "Tokenize");

        assert_non_null(node);
        assert_string_equal(node->domain, "acme");
        assert_int_equal(node->n_inputs, 2);
        assert_string_equal(node->inputs[0]->name, "words");
        assert_string_equal(node->inputs[1]->name, "k");
        assert_non_null(node->inputs[1]->constant); // it does not train, so it is no parameter
        assert_string_equal(ot_attr_string(node, "mode"), "fast");
        assert_int_equal(ot__model_opset(models[i], "acme"), 3);
        assert_null(node_of(models[i], "Decode")); // nothing needs it
    }
    assert_int_equal(ot_checkpoint_parameter_count(ot_artifacts_checkpoint(artifacts)), 2);
    ot_artifacts_destroy(artifacts);
}

static void what_an_unknown_operator_makes_has_the_type_of_what_it_meets(void **state)
{
    static const char *const gemm[] = {"w", "b"};
    ot_artifacts *artifacts;
    ot_dtype dtype;
    ot_shape shape;

    (void)state;
    assert_ok(generate(PLAIN, gemm, 2, &artifacts));
    assert_ok(ot_model_value_info(ot_artifacts_training_model(artifacts), "e", &dtype, &shape));
    assert_int_equal(dtype, OT_F32);
    assert_int_equal(shape.ndim, -1);
    ot_artifacts_destroy(artifacts);
    assert_fails(generate(MODEL("  c = acme.Clean(n) h = Relu(c)"), gemm, 2, &artifacts),
                 OT_ERR_INVALID,
                 "operator acme.Clean is not supported: it makes 'c', which Relu of 'h' takes; to "
                 "carry it along, state its type in the model's value_info");
}

static void an_unknown_operator_between_parameter_and_loss_is_refused_by_name(void **state)
{
    static const char *const last[] = {"w"}, *const both[] = {"u", "w"};
    ot_artifacts *artifacts;

    (void)state;
    assert_fails(generate(ON_THE_WAY, both, 2, &artifacts), OT_ERR_UNSUPPORTED,
                 "acme.Norm of 'h' (from 'u' by MatMul");
    assert_non_null(strstr(ot_error_message(), "freeze 'u' to train the rest"));
    assert_ok(generate(ON_THE_WAY, last, 1, &artifacts));
    assert_non_null(node_of(ot_artifacts_training_model(artifacts), "Norm"));
    ot_artifacts_destroy(artifacts);
}

static void integers_and_strings_end_the_way(void **state)
{
    ot_artifacts *artifacts;

    (void)state;
    assert_ok(
        generate("<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 1]> g (float[N, 2] x) => "
                 "(float[N, 2] y) <float[2] w = {1, 2}, int64[N, 2] i>"
                 "{ y = Mul(x, w) i = acme.Round(w) j = Cast <to = 1> (i) z = Add(y, j) }",
                 NULL, 0, &artifacts));
    ot_artifacts_destroy(artifacts);
}

static void what_a_subgraph_reads_counts_as_read(void **state)
{
    static const char *const names[] = {"w"};
    const char *text = "<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 1]> g (float[2] x, "
                       "bool c) => (float[2] y) "
                       "<float[2] w = {1, 2}>"
                       "{ a = Mul(x, w)"
                       "  b = If (c) <then_branch = t () => (float[2] p) { p = Neg(w) },"
                       "              else_branch = e () => (float[2] q) { q = acme.Odd(w) }>"
                       "  y = Add(a, b) }";
    ot_artifacts *artifacts;

    (void)state;
    // Without the branches the gradient of w would be wrong.
    assert_fails(generate(text, names, 1, &artifacts), OT_ERR_UNSUPPORTED, "If of 'b' (from 'w'");
}

static void nodes_with_subgraphs_are_carried_where_no_gradient_passes_them(void **state)
{
    const char *text =
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x, bool c) => (float[2] y) "
        "<float[2] w = {1, 2}, float[2] v = {3, 4}, int64[2] i>"
        "{ a = Mul(x, w)"
        "  i = If (c) <then_branch = t () => (int64[2] p) { p = Cast<to = 7>(w) },"
        "              else_branch = e () => (int64[2] q) { n = Neg(v) o = acme.Odd(n)"
        "                                                   q = Cast<to = 7>(o) }>"
        "  f = Cast<to = 1>(i)"
        "  y = Add(a, f) }";
    ot_artifacts *artifacts;
    const ot_node *node;

    (void)state;
    assert_ok(generate(text, NULL, 0, &artifacts));
    node = node_of(ot_artifacts_training_model(artifacts), "If");
    assert_non_null(node);
    assert_int_equal(ot__node_attr(node, "else_branch")->g->n_nodes, 3);
    assert_non_null(node_of(ot_artifacts_eval_model(artifacts), "If"));
    ot_artifacts_destroy(artifacts);
}

static void opsets_that_would_have_to_be_raised_are_refused(void **state)
{
    ot_artifacts *artifacts;

    (void)state;
    assert_fails(generate("<ir_version: 4, opset_import: [\"\" : 9]> g (float[2] x) => (float[2] y)"
                          "<float[2] w = {1, 2}> { a = Foo(x) y = Mul(a, w) }",
                          NULL, 0, &artifacts),
                 OT_ERR_UNSUPPORTED, "Foo of 'a': the operator is not known");
    assert_ok(generate("<ir_version: 4, opset_import: [\"\" : 9, \"acme\" : 1]> g (float[2] x) => "
                       "(float[2] y) <float[2] w = {1, 2}> { a = acme.Foo(x) y = Mul(a, w) }",
                       NULL, 0, &artifacts));
    ot_artifacts_destroy(artifacts);
}

static void reports_name_what_this_program_cannot_run(void **state)
{
    ot_model *model = read_text(PLAIN);
    ot_report *report;

    (void)state;
    assert_ok(ot_report_create(model, NULL, &report));
    assert_false(ot_report_trainable(report));
    assert_string_equal(ot_report_problem(report, 0), "operator acme.Tokenize is not supported");
    ot_report_destroy(report);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_unknown_operators_are_carried_unchanged),
        cmocka_unit_test(what_an_unknown_operator_makes_has_the_type_of_what_it_meets),
        cmocka_unit_test(an_unknown_operator_between_parameter_and_loss_is_refused_by_name),
        cmocka_unit_test(integers_and_strings_end_the_way),
        cmocka_unit_test(what_a_subgraph_reads_counts_as_read),
        cmocka_unit_test(nodes_with_subgraphs_are_carried_where_no_gradient_passes_them),
        cmocka_unit_test(opsets_that_would_have_to_be_raised_are_refused),
        cmocka_unit_test(reports_name_what_this_program_cannot_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
