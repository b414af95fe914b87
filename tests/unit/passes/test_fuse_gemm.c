// SPDX-License-Identifier: Apache-2.0
#include "fuse_fixture.h"

#define GEMM_INPUTS "float[6,4] x, float[5,4] w, float[5] b"

static ot_node *fused_node(const ot_model *model)
{
    ot_node *node = find_node(model, "FusedGemm");

    assert_non_null(node);
    return node;
}

// No fused product: every node is still there.
static void expect_left(const char *graph, int n_nodes)
{
    ot_model *model = fuse(ot__fuse_gemm, graph);

    assert_int_equal(model->graph->n_nodes, n_nodes);
    assert_null(find_node(model, "FusedGemm"));
    ot_model_destroy(model);
}

static void gemm_and_activation_become_one(void **state)
{
    ot_model *model = fuse(ot__fuse_gemm, "g (" GEMM_INPUTS ") => (float[6,5] y)"
                                          "{ p = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(x, w, b)"
                                          "  y = LeakyRelu<alpha = 0.25>(p) }");
    const ot_node *node = fused_node(model);

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_int_equal(node->n_inputs, 3);
    assert_string_equal(ot_attr_string(node, "activation"), "LeakyRelu[0.25]");
    assert_int_equal(ot_attr_int(node, "transA"), 0);
    assert_int_equal(ot_attr_int(node, "transB"), 1);
    assert_float_equal(ot_attr_float(node, "alpha"), 0.5, 0);
    assert_float_equal(ot_attr_float(node, "beta"), 2, 0);
    ot_model_destroy(model);
}

static void a_product_takes_its_bias(void **state)
{
    ot_model *model = fuse(ot__fuse_gemm, "g (float[2,3,4] x, float[4,5] w, float[5] b)"
                                          " => (float[2,3,5] y)"
                                          "{ p = MatMul(x, w) s = Add(b, p) y = Relu(s) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(fused_node(model)->inputs[2]->name, "b");
    assert_string_equal(ot_attr_string(fused_node(model), "activation"), "Relu");
    ot_model_destroy(model);
    // The gradient of Gelu needs its input, which is stored once, with the bias.
    model = fuse(ot__fuse_gemm, "g (float[2,3,4] x, float[4,5] w, float[1,5] b)"
                                " => (float[2,3,5] y, float[2,3,5] s)"
                                "{ p = MatMul(x, w) s = Add(p, b) y = com.microsoft.Gelu(s) }");
    assert_int_equal(model->graph->n_nodes, 2);
    assert_string_equal(fused_node(model)->outputs[0]->name, "s");
    assert_string_equal(ot_attr_string(fused_node(model), "activation"), "");
    ot_model_destroy(model);
}

static void the_sum_of_a_residual_block_goes_along(void **state)
{
    ot_model *model =
        fuse(ot__fuse_gemm, "g (float[2,3,4] x, float[4,5] w, float[5] b, float[2,3,5] z)"
                            " => (float[2,3,5] y)"
                            "{ p = MatMul(x, w) s = Add(p, b) y = Add(z, s) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(fused_node(model)->inputs[3]->name, "z");
    assert_string_equal(ot_attr_string(fused_node(model), "activation"), "Add");
    ot_model_destroy(model);
}

static void the_gradient_of_an_activation_goes_into_the_product_before_it(void **state)
{
    ot_model *model =
        fuse(ot__fuse_gemm, "g (float[6,5] dy, float[5,4] w, float[6,4] y) => (float[6,4] dx)"
                            "{ p = Gemm(dy, w) dx = com.microsoft.ReluGrad(p, y) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_null(fused_node(model)->inputs[2]);
    assert_string_equal(fused_node(model)->inputs[3]->name, "y");
    assert_string_equal(ot_attr_string(fused_node(model), "activation"), "com.microsoft.ReluGrad");
    ot_model_destroy(model);
    model =
        fuse(ot__fuse_gemm, "g (float[2,3,5] dy, float[4,5] w, float[2,3,4] y) => (float[2,3,4] dx)"
                            "{ p = com.microsoft.FusedMatMul<transB = 1, alpha = 0.5>(dy, w)"
                            "  dx = com.microsoft.ReluGrad(p, y) }");
    assert_int_equal(model->graph->n_nodes, 1);
    assert_int_equal(ot_attr_int(fused_node(model), "transB"), 1);
    ot_model_destroy(model);
}

static void a_product_that_something_else_reads_stays(void **state)
{
    (void)state;
    expect_left("g (" GEMM_INPUTS ") => (float[6,5] y, float[6,5] p)"
                "{ p = Gemm<transB = 1>(x, w, b) y = Relu(p) }",
                2);
    expect_left("g (" GEMM_INPUTS ") => (float[6,5] y, float[6,5] n)"
                "{ p = Gemm<transB = 1>(x, w, b) y = Relu(p) n = Neg(p) }",
                3);
    expect_left("g (" GEMM_INPUTS ") => (float[6,5] y)"
                "{ p = Gemm<transB = 1>(x, w, b) y = Add(p, p) }",
                2);
}

static void what_is_no_bias_is_left(void **state)
{
    (void)state;
    expect_left("g (float[2,3,4] x, float[4,5] w, float[3,1] b) => (float[2,3,5] y)"
                "{ p = MatMul(x, w) y = Add(p, b) }",
                2);
    expect_left("g (float[2,3,4] x, float[4,1] w, float[5] b) => (float[2,3,5] y)"
                "{ p = MatMul(x, w) y = Add(p, b) }",
                2);
    expect_left("g (float[3,4] x, float[4,5] w, float[1,1,5] b) => (float[1,3,5] y)"
                "{ p = MatMul(x, w) y = Add(p, b) }",
                2);
    expect_left("g (float[2,3,4] x, float[4] w, float[3] b) => (float[2,3] y)"
                "{ p = MatMul(x, w) y = Add(p, b) }",
                2);
}

static void operators_that_need_the_product_second_or_round_more_are_left(void **state)
{
    (void)state;
    expect_left("g (float[6,4] x, float[4,5] w, float[6,5] z) => (float[6,5] y)"
                "{ p = MatMul(x, w) y = Sub(z, p) }",
                2);
    expect_left("g (float[6,4] x, float[4,5] w) => (float[6,5] y)"
                "{ p = MatMul(x, w) y = Tanh(p) }",
                2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_and_activation_become_one),
        cmocka_unit_test(a_product_takes_its_bias),
        cmocka_unit_test(the_sum_of_a_residual_block_goes_along),
        cmocka_unit_test(the_gradient_of_an_activation_goes_into_the_product_before_it),
        cmocka_unit_test(a_product_that_something_else_reads_stays),
        cmocka_unit_test(what_is_no_bias_is_left),
        cmocka_unit_test(operators_that_need_the_product_second_or_round_more_are_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
