// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "evaluate.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"                            \
    "g (float[2, 3] x) => (float[a, b] y)"                                                         \
    "<float[2, 3] w = {1, 0, -1, 0.5, 2, -2}, float[2] bias = {-1, 10}>"

// x = 0, 1, 2, ...; the names in `e` are those of the model returned.
static ot_model *compute_y(evaluation *e, const char *text, ot_shape shape)
{
    const double x[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                          16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    ot_model *model = read_prepared(text);

    feed(e, "x", new_tensor(OT_F32, shape, x));
    compute(e, model);
    return model;
}

static void assert_elements(const char *text, ot_shape shape, const double *expected, int64_t n)
{
    evaluation e = {0};
    ot_model *model = compute_y(&e, text, shape);

    assert_int_equal(ot_tensor_count(result(&e, "y")), n);
    for (int64_t i = 0; i < n; i++)
        if (fabs(element(&e, "y", i) - expected[i]) > 1e-5)
            fail_msg("element %d is %g, expected %g", (int)i, element(&e, "y", i), expected[i]);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

static void a_product_and_its_activation_part(void **state)
{
    // x w^T + bias: rows (0, 1, 2) and (3, 4, 5) give -2 - 1, -2 + 10 and -2 - 1, -0.5 + 10.
    ot_model *model = read_prepared(
        HEAD "{ y = com.microsoft.FusedGemm <activation = \"Relu\", transB = 1> (x, w, bias) }");

    (void)state;
    assert_string_equal(find_value(model, "y")->producer->op_type, "Relu");
    assert_int_equal(ot_attr_int(find_node(model, "Gemm"), "transB"), 1);
    ot_model_destroy(model);
    assert_elements(
        HEAD "{ y = com.microsoft.FusedGemm <activation = \"Relu\", transB = 1> (x, w, bias) }",
        OT_SHAPE(2, 3), (const double[]){0, 8, 0, 9.5}, 4);
}

static void an_activation_keeps_its_attributes(void **state)
{
    (void)state;
    assert_elements(HEAD "{ y = com.microsoft.FusedGemm <activation = \"LeakyRelu\", transB = 1,"
                         " activation_alpha = 0.25> (x, w, bias) }",
                    OT_SHAPE(2, 3), (const double[]){-0.75, 8, -0.75, 9.5}, 4);
}

static void a_product_without_activation_is_plain(void **state)
{
    (void)state;
    assert_elements(HEAD "{ y = com.microsoft.FusedGemm <transB = 1> (x, w, bias) }",
                    OT_SHAPE(2, 3), (const double[]){-3, 8, -3, 9.5}, 4);
}

#define CONV                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"                            \
    "g (float[1, 1, 2, 2] x) => (float[a, b, c, d] y)"                                             \
    "<float[1, 1, 1, 1] k = {-2}, float[1] bias = {3}, float[1, 1, 2, 2] z = {1, 1, 1, 100}>"

static void a_convolution_its_addend_and_activation_part(void **state)
{
    // -2 x + 3 + z: 4, 2, 0, 97.
    (void)state;
    assert_elements(CONV "{ y = com.microsoft.FusedConv <activation = \"Relu\"> (x, k, bias) }",
                    OT_SHAPE(1, 1, 2, 2), (const double[]){3, 1, 0, 0}, 4);
    assert_elements(CONV "{ y = com.microsoft.FusedConv <activation = \"LeakyRelu\","
                         " activation_params = [0.5]> (x, k, bias) }",
                    OT_SHAPE(1, 1, 2, 2), (const double[]){3, 1, -0.5, -1.5}, 4);
    assert_elements(CONV "{ y = com.microsoft.FusedConv <activation = \"Clip\","
                         " activation_params = [1.0, 5.0]> (x, k, bias, z) }",
                    OT_SHAPE(1, 1, 2, 2), (const double[]){4, 2, 1, 5}, 4);
}

static void a_normalisation_parts_from_the_sum_before_it(void **state)
{
    // x + skip + bias: rows (1, 3) and (5, 9); normalised -1, 1 each, times 2, plus 10.
    static const char *const text =
        "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"
        "g (float[1, 2, 2] x) => (float[a, b, c] y, float[a, b, c] sum)"
        "<float[1, 2, 2] skip = {0, 0, 2, 4}, float[2] gamma = {2, 2}, float[2] beta = {10, 10},"
        " float[2] bias = {1, 2}>"
        "{ y, , , sum = com.microsoft.SkipLayerNormalization <epsilon = 0.0>"
        " (x, skip, gamma, beta, bias) }";
    evaluation e = {0};
    ot_model *model;

    (void)state;
    assert_elements(text, OT_SHAPE(1, 2, 2), (const double[]){8, 12, 8, 12}, 4);
    model = compute_y(&e, text, OT_SHAPE(1, 2, 2));
    assert_true(element(&e, "sum", 0) == 1.0 && element(&e, "sum", 3) == 9.0);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

static void what_is_not_understood_is_said(void **state)
{
    ot_model *model = read_text(CONV "{ y = com.microsoft.FusedConv <activation = \"Elu\","
                                     " activation_params = [0.5]> (x, k, bias) }");

    (void)state;
    assert_fails(ot__fuse_undo(model), OT_ERR_UNSUPPORTED,
                 "an activation with parameters is not supported");
    ot_model_destroy(model);
    model = read_text(HEAD "{ y = com.microsoft.FusedGemm (x) }");
    assert_fails(ot__fuse_undo(model), OT_ERR_INVALID, "FusedGemm of 'y' lacks inputs");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_and_its_activation_part),
        cmocka_unit_test(an_activation_keeps_its_attributes),
        cmocka_unit_test(a_product_without_activation_is_plain),
        cmocka_unit_test(a_convolution_its_addend_and_activation_part),
        cmocka_unit_test(a_normalisation_parts_from_the_sum_before_it),
        cmocka_unit_test(what_is_not_understood_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
