// SPDX-License-Identifier: Apache-2.0
// Gradients of operators that are composed of others, where central differences cannot tell: at
// singular points, where the parts alone would give infinities.
#include "gradients_fixture.h"

// The gradient of the sum of y by x, of n elements.
static void expect_gradient(const char *text, const ot_shape *shape, const double *x,
                            const double *expected)
{
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_model *model = model_of(text);
    ot_tensor *in = new_tensor(OT_F32, *shape, x), *out[2] = {NULL};
    ot_gradients *g = NULL;

    options.seed = OT_SEED_ONES;
    assert_ok(ot_gradients_create(model, "y", (const char *const[]){"x"}, 1, &options, &g));
    assert_ok(ot_gradients_run(g, (const ot_tensor *const *)&in, 1, out, 2));
    for (int64_t k = 0; k < ot_tensor_count(in); k++)
        assert_near(ot__tensor_get_f64(out[1], k), expected[k], 1e-6);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(out[i]);
    ot_tensor_destroy(in);
    ot_gradients_destroy(g);
    ot_model_destroy(model);
}

static void a_vector_of_zeros_passes_nothing(void **state)
{
    static const double x[] = {0, 0, 3, 4}, of_2[] = {0, 0, 0.032, -0.024}, of_1[] = {0, 0, 0, 0};

    (void)state;
    expect_gradient(HEAD "g (float[2,2] x) => (float[2,2] y) { y = LpNormalization(x) }",
                    &OT_SHAPE(2, 2), x, of_2);
    expect_gradient(HEAD "g (float[2,2] x) => (float[2,2] y) { y = LpNormalization<p = 1>(x) }",
                    &OT_SHAPE(2, 2), x, of_1);
}

static void a_norm_of_zeros_passes_nothing(void **state)
{
    static const double x[] = {0, 0, 3, -4}, of_2[] = {0, 0, 0.6, -0.8};
    static const double of_1[] = {0, 0, 1, -1}, of_3[] = {0, 0, 0.44485135, -0.79084685};

    (void)state;
    expect_gradient(HEAD "g (float[1,2,2] x) => (float[1,2,1] y) { y = GlobalLpPool(x) }",
                    &OT_SHAPE(1, 2, 2), x, of_2);
    expect_gradient(HEAD "g (float[1,2,2] x) => (float[1,2,1] y) { y = GlobalLpPool<p = 1>(x) }",
                    &OT_SHAPE(1, 2, 2), x, of_1);
    expect_gradient(HEAD "g (float[1,2,2] x) => (float[1,2,1] y) { y = GlobalLpPool<p = 3>(x) }",
                    &OT_SHAPE(1, 2, 2), x, of_3);
}

// As PyTorch's standard deviation: each element goes on by itself, less the mean of all.
static void equal_elements_have_a_finite_gradient(void **state)
{
    static const double x[] = {2, 2}, none[] = {0, 0};

    (void)state;
    expect_gradient(HEAD "g (float[2,1,1,1] x) => (float[2,1,1,1] y)"
                         " { y = MeanVarianceNormalization(x) }",
                    &OT_SHAPE(2, 1, 1, 1), x, none);
}

// The softmax of no score is not a number, but nothing of that reaches queries and keys.
static void a_query_without_keys_passes_nothing(void **state)
{
    static const double x[] = {1, 2, 3}, none[] = {0, 0, 0};

    (void)state;
    expect_gradient(HEAD_24 "g (float[1,1,3,1] x) => (float[1,1,3,1] y)"
                            "<bool[1,1] m = {0}> { y = Attention(x, x, x, m) }",
                    &OT_SHAPE(1, 1, 3, 1), x, none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vector_of_zeros_passes_nothing),
        cmocka_unit_test(a_norm_of_zeros_passes_nothing),
        cmocka_unit_test(equal_elements_have_a_finite_gradient),
        cmocka_unit_test(a_query_without_keys_passes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
