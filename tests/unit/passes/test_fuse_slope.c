// SPDX-License-Identifier: Apache-2.0
#include "fuse_fixture.h"

#define INPUTS "float[6,4] x, float[6,5] z, float[5,4] w"

static void expect_slope(const char *activation, const char *gradient, const char *expected)
{
    ot__buf text = {0};
    ot_model *model;
    const ot_node *node;

    ot__buf_printf(&text,
                   "g (" INPUTS ") => (float[6,4] y, float[6,4] dx)"
                   "{ a = Neg(x) y = %s(a) dy = MatMul(z, w) dx = com.microsoft.%s(dy, a) }",
                   activation, gradient);
    assert_ok(ot__buf_status(&text));
    model = fuse(ot__fuse_slope, text.data);
    ot__buf_deinit(&text);
    node = find_node(model, "ActivationSlope");
    assert_non_null(node);
    assert_string_equal(ot_attr_string(node, "activation"), expected);
    assert_string_equal(node->outputs[0]->name, "y");
    assert_int_equal(model->graph->n_nodes, 4);
    node = find_node(model, "Mul");
    assert_non_null(node);
    assert_string_equal(node->inputs[0]->name, "dy");
    assert_ptr_equal(node->inputs[1]->producer, find_node(model, "ActivationSlope"));
    // Which the product takes along.
    assert_ok(ot__fuse_gemm(model));
    assert_string_equal(ot_attr_string(find_node(model, "FusedGemm"), "activation"), "Mul");
    assert_int_equal(model->graph->n_nodes, 3);
    ot_model_destroy(model);
}

static void expect_no_slope(const char *graph)
{
    ot_model *model = fuse(ot__fuse_slope, graph);

    assert_null(find_node(model, "ActivationSlope"));
    assert_null(find_node(model, "Mul"));
    ot_model_destroy(model);
}

static void an_activation_gives_the_slope_that_a_product_is_multiplied_by(void **state)
{
    (void)state;
    expect_slope("com.microsoft.Gelu", "GeluGrad", "Gelu");
    expect_slope("com.microsoft.FastGelu", "FastGeluGrad", "FastGelu");
    expect_slope("com.microsoft.QuickGelu", "QuickGeluGrad", "QuickGelu");
    expect_slope("com.microsoft.QuickGelu <alpha = 1.5>", "QuickGeluGrad <alpha = 1.5>",
                 "QuickGelu");
}

static void of_a_newer_opset_too(void **state)
{
    ot_model *model = read_prepared(
        "<ir_version: 9, opset_import: [\"\" : 20, \"com.microsoft\" : 1]> g (" INPUTS ")"
        " => (float[6,4] y, float[6,4] dx)"
        "{ a = Neg(x) y = Gelu <approximate = \"tanh\"> (a) dy = MatMul(z, w)"
        "  dx = com.microsoft.FastGeluGrad(dy, a) }");

    (void)state;
    assert_ok(ot__fuse_slope(model));
    assert_string_equal(ot_attr_string(find_node(model, "ActivationSlope"), "activation"),
                        "FastGelu");
    ot_model_destroy(model);
    model = read_prepared(
        "<ir_version: 9, opset_import: [\"\" : 20, \"com.microsoft\" : 1]> g (" INPUTS ")"
        " => (float[6,4] y, float[6,4] dx)"
        "{ a = Neg(x) y = Gelu(a) dy = MatMul(z, w) dx = com.microsoft.FastGeluGrad(dy, a) }");
    assert_ok(ot__fuse_slope(model));
    assert_null(find_node(model, "ActivationSlope"));
    ot_model_destroy(model);
}

static void no_other_gradient_does(void **state)
{
    (void)state;
    // X is needed beside.
    expect_no_slope("g (" INPUTS ") => (float[6,4] y, float[6,4] dx, float[6,4] b)"
                    "{ a = Neg(x) b = Exp(a) y = com.microsoft.Gelu(a) dy = MatMul(z, w)"
                    "  dx = com.microsoft.GeluGrad(dy, a) }");
    expect_no_slope("g (" INPUTS ") => (float[6,4] y, float[6,4] dx, float[6,4] a)"
                    "{ a = Neg(x) y = com.microsoft.Gelu(a) dy = MatMul(z, w)"
                    "  dx = com.microsoft.GeluGrad(dy, a) }");
    expect_no_slope("g (" INPUTS ") => (float[6,4] y, float[6,4] dx)"
                    "{ y = com.microsoft.Gelu(x) dy = MatMul(z, w)"
                    "  dx = com.microsoft.GeluGrad(dy, x) }");
    // dY is not a product, or is needed beside.
    expect_no_slope("g (float[6,4] x, float[6,4] z) => (float[6,4] y, float[6,4] dx)"
                    "{ a = Neg(x) y = com.microsoft.Gelu(a) dy = Exp(z)"
                    "  dx = com.microsoft.GeluGrad(dy, a) }");
    expect_no_slope("g (" INPUTS ") => (float[6,4] y, float[6,4] dx, float[6,4] dy)"
                    "{ a = Neg(x) y = com.microsoft.Gelu(a) dy = MatMul(z, w)"
                    "  dx = com.microsoft.GeluGrad(dy, a) }");
    // The activation is another one.
    expect_no_slope("g (" INPUTS ") => (float[6,4] y, float[6,4] dx)"
                    "{ a = Neg(x) y = com.microsoft.FastGelu(a) dy = MatMul(z, w)"
                    "  dx = com.microsoft.GeluGrad(dy, a) }");
    expect_no_slope("g (" INPUTS ") => (float[6,4] y, float[6,4] dx)"
                    "{ a = Neg(x) y = com.microsoft.QuickGelu <alpha = 1.5> (a) dy = MatMul(z, w)"
                    "  dx = com.microsoft.QuickGeluGrad <alpha = 2.0> (dy, a) }");
    expect_no_slope("g (" INPUTS ", float[4] b) => (float[6,4] y, float[6,4] dx)"
                    "{ a = Neg(x) y = com.microsoft.FastGelu(a, b) dy = MatMul(z, w)"
                    "  dx = com.microsoft.FastGeluGrad(dy, a) }");
}

static void types_that_would_round_the_slope_keep_x(void **state)
{
    ot_model *model =
        read_prepared("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"
                      " g (bfloat16[6,4] x, bfloat16[6,5] z, bfloat16[5,4] w)"
                      " => (bfloat16[6,4] y, bfloat16[6,4] dx)"
                      "{ a = Neg(x) y = com.microsoft.Gelu(a) dy = MatMul(z, w)"
                      "  dx = com.microsoft.GeluGrad(dy, a) }");

    (void)state;
    assert_ok(ot__fuse_slope(model));
    assert_null(find_node(model, "ActivationSlope"));
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_activation_gives_the_slope_that_a_product_is_multiplied_by),
        cmocka_unit_test(of_a_newer_opset_too),
        cmocka_unit_test(no_other_gradient_does),
        cmocka_unit_test(types_that_would_round_the_slope_keep_x),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
