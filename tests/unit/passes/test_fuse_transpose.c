// SPDX-License-Identifier: Apache-2.0
#include "fuse_fixture.h"

static ot_model *fuse_to(const char *graph, const char *op_type, int transposed_a, int transposed_b)
{
    ot_model *model = fuse(ot__fuse_transpose, graph);
    const ot_node *node = find_node(model, op_type);

    assert_non_null(node);
    assert_null(find_node(model, "Transpose"));
    assert_int_equal(ot_attr_int(node, "transA"), transposed_a);
    assert_int_equal(ot_attr_int(node, "transB"), transposed_b);
    return model;
}

static void expect_left(const char *graph, int n_nodes)
{
    ot_model *model = fuse(ot__fuse_transpose, graph);

    assert_int_equal(model->graph->n_nodes, n_nodes);
    assert_non_null(find_node(model, "Transpose"));
    ot_model_destroy(model);
}

static void a_transposed_operand_is_a_flag(void **state)
{
    (void)state;
    ot_model_destroy(fuse_to("g (float[2,3,4] x, float[5,4] w) => (float[2,3,5] y)"
                             "{ t = Transpose<perm = [1, 0]>(w) y = MatMul(x, t) }",
                             "FusedMatMul", 0, 1));
    ot_model_destroy(fuse_to("g (float[4,3] x, float[5,4] w) => (float[3,5] y)"
                             "{ s = Transpose(x) t = Transpose(w) y = MatMul(s, t) }",
                             "FusedMatMul", 1, 1));
    ot_model_destroy(fuse_to("g (float[2,3,4] x, float[2,3,5] w) => (float[2,4,5] y)"
                             "{ t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(t, w) }",
                             "FusedMatMul", 1, 0));
}

static void a_flag_that_was_there_goes(void **state)
{
    ot_model *model =
        fuse_to("g (float[6,4] x, float[4,5] w, float[5] b) => (float[6,5] y)"
                "{ t = Transpose(w) y = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(x, t, b) }",
                "Gemm", 0, 0);
    const ot_node *node = find_node(model, "Gemm");

    (void)state;
    assert_int_equal(node->n_inputs, 3);
    assert_float_equal(ot_attr_float(node, "alpha"), 0.5, 0);
    assert_float_equal(ot_attr_float(node, "beta"), 2, 0);
    ot_model_destroy(model);
    model =
        fuse_to("g (float[2,3,4] x, float[4,5] w) => (float[2,3,5] y)"
                "{ t = Transpose(w) y = com.microsoft.FusedMatMul<transB = 1, alpha = 0.5>(x, t) }",
                "FusedMatMul", 0, 0);
    assert_float_equal(ot_attr_float(find_node(model, "FusedMatMul"), "alpha"), 0.5, 0);
    ot_model_destroy(model);
}

// As the gradient of a weight that the model transposes.
static void a_transposed_result_has_its_operands_exchanged(void **state)
{
    ot_model *model = fuse_to("g (float[6,4] x, float[6,5] dy) => (float[5,4] dw)"
                              "{ d = Gemm<transA = 1, alpha = 0.5>(x, dy) dw = Transpose(d) }",
                              "Gemm", 1, 0);

    (void)state;
    assert_string_equal(find_node(model, "Gemm")->inputs[0]->name, "dy");
    assert_float_equal(ot_attr_float(find_node(model, "Gemm"), "alpha"), 0.5, 0);
    ot_model_destroy(model);
    ot_model_destroy(fuse_to("g (float[2,3,4] a, float[2,4,5] b) => (float[2,5,3] y)"
                             "{ p = MatMul(a, b) y = Transpose<perm = [0, 2, 1]>(p) }",
                             "FusedMatMul", 1, 1));
    // All three at once: (A^T * B)^T = B^T * A.
    ot_model_destroy(fuse_to("g (float[3,4] a, float[4,5] b) => (float[5,3] y)"
                             "{ t = Transpose(a) u = Transpose(b)"
                             "  p = com.microsoft.FusedMatMul<transA = 1, transB = 1>(t, u)"
                             "  y = Transpose(p) }",
                             "FusedMatMul", 1, 1));
}

static void products_share_the_transpose_of_a_weight(void **state)
{
    ot_model *model = fuse(ot__fuse_transpose,
                           "g (float[6,4] x, float[5,4] w, float[6,5] dy)"
                           " => (float[6,5] y, float[6,4] dx)"
                           "{ t = Transpose(w) y = MatMul(x, t) dx = Gemm<transB = 1>(dy, t) }");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

static void a_transpose_that_something_else_reads_stays(void **state)
{
    (void)state;
    expect_left("g (float[6,4] x, float[5,4] w) => (float[6,5] y, float[4,5] n)"
                "{ t = Transpose(w) y = MatMul(x, t) n = Neg(t) }",
                3);
    expect_left("g (float[6,4] x, float[5,4] w) => (float[6,5] y, float[4,5] t)"
                "{ t = Transpose(w) y = MatMul(x, t) }",
                2);
    expect_left("g (float[6,4] x, float[4,5] w) => (float[6,5] y, float[5,6] t)"
                "{ y = MatMul(x, w) t = Transpose(y) }",
                2);
}

static void other_orders_and_kinds_are_left(void **state)
{
    (void)state;
    expect_left("g (float[3,2,4] x, float[2,4,5] w) => (float[2,3,5] y)" // batches move
                "{ t = Transpose<perm = [1, 0, 2]>(x) y = MatMul(t, w) }",
                2);
    expect_left("g (float[4,3,2] x, float[2,4,5] w) => (float[2,3,5] y)"
                "{ t = Transpose(x) y = MatMul(t, w) }",
                2);
    expect_left("g (float[2,4,3] x, float[4,5] w) => (float[2,3,5] y)" // rows of batches are one
                "{ t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(t, w) }",
                2);
    expect_left("g (float[6,4] x, float[4,5] w, float[5] b) => (float[5,6] y)" // the bias is a row
                "{ p = Gemm(x, w, b) y = Transpose(p) }",
                2);
    expect_left("g (float[6,4] x, float[5,4] w) => (float[4,5] y, float[6,5] z)"
                "{ y = Transpose(w) z = MatMul(x, y) }",
                2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transposed_operand_is_a_flag),
        cmocka_unit_test(a_flag_that_was_there_goes),
        cmocka_unit_test(a_transposed_result_has_its_operands_exchanged),
        cmocka_unit_test(products_share_the_transpose_of_a_weight),
        cmocka_unit_test(a_transpose_that_something_else_reads_stays),
        cmocka_unit_test(other_orders_and_kinds_are_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
