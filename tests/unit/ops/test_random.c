// SPDX-License-Identifier: Apache-2.0
// What RandomNormal and its relatives draw: the distribution that they state, of the step's
// generator or of their own seed, and no other for another node.
#include <math.h>

#include "evaluate.h"
#include "kernels/kernels.h"
#include "onnxtrain/runner.h"

enum { COUNT = 100000 };

typedef struct moments {
    double mean, variance, least, most;
} moments;

static moments moments_of(const float *x, int n)
{
    moments m = {0, 0, INFINITY, -INFINITY};

    for (int i = 0; i < n; i++) {
        m.mean += (double)x[i] / n;
        m.least = fmin(m.least, (double)x[i]);
        m.most = fmax(m.most, (double)x[i]);
    }
    for (int i = 0; i < n; i++)
        m.variance += ((double)x[i] - m.mean) * ((double)x[i] - m.mean) / n;
    return m;
}

static void expect_near(double found, double expected, double deviation)
{
    if (!(fabs(found - expected) <= 5 * deviation))
        fail_msg("%g, expected %g with standard deviation %g", found, expected, deviation);
}

static ot_tensor *run(const char *nodes, const char *type)
{
    static const char format[] = "<ir_version: 8, opset_import: [\"\" : 22]> "
                                 "g (float[100000] x, float[1,4] weights) => (%s y) { %s }";
    ot_tensor *x, *weights, *y = NULL;
    ot_model *model;
    char text[500];

    snprintf(text, sizeof(text), format, type, nodes);
    model = read_text(text);
    assert_ok(ot_tensor_create(OT_F32, &OT_SHAPE(COUNT), &x));
    for (int i = 0; i < COUNT; i++)
        ((float *)ot_tensor_data(x))[i] = 0.25f;
    weights =
        new_tensor(OT_F32, OT_SHAPE(1, 4), (const double[]){log(1), log(2), -INFINITY, log(5)});
    assert_ok(ot_model_run(model, NULL, (const ot_tensor *const[]){x, weights}, 2, &y, 1));
    ot_tensor_destroy(x);
    ot_tensor_destroy(weights);
    ot_model_destroy(model);
    return y;
}

static void numbers_have_the_distribution_that_is_stated(void **state)
{
    const double n = COUNT;
    ot_tensor *normal = run("y = RandomNormalLike<mean = 3.0, scale = 2.0>(x)", "float[100000]");
    ot_tensor *uniform =
        run("y = RandomUniform<low = -1.0, high = 3.0, shape = [100000]>()", "float[100000]");
    moments m = moments_of(ot_tensor_data(normal), COUNT);

    (void)state;
    expect_near(m.mean, 3.0, 2.0 / sqrt(n));
    expect_near(m.variance, 4.0, 4.0 * sqrt(2.0 / n));
    m = moments_of(ot_tensor_data(uniform), COUNT);
    expect_near(m.mean, 1.0, 4.0 / sqrt(12.0 * n));
    expect_near(m.variance, 16.0 / 12.0, 16.0 / sqrt(180.0 * n)); // of (u - 1 / 2)^2: 1 / 180
    assert_true(m.least >= -1.0 && m.least < -0.99 && m.most <= 3.0 && m.most > 2.99);
    ot_tensor_destroy(normal);
    ot_tensor_destroy(uniform);
}

static void true_is_as_frequent_as_its_probability(void **state)
{
    ot_tensor *y = run("y = Bernoulli(x)", "float[100000]");
    const moments m = moments_of(ot_tensor_data(y), COUNT);

    (void)state;
    expect_near(m.mean, 0.25, sqrt(0.25 * 0.75 / COUNT));
    assert_true(m.least == 0.0 && m.most == 1.0);
    ot_tensor_destroy(y);
}

static void classes_are_as_frequent_as_their_weights(void **state)
{
    static const double share[] = {1.0 / 8, 2.0 / 8, 0, 5.0 / 8};
    ot_tensor *y =
        run("y = Multinomial<sample_size = 100000, dtype = 7>(weights)", "int64[1,100000]");
    int count[4] = {0};

    (void)state;
    for (int i = 0; i < COUNT; i++)
        count[((const int64_t *)ot_tensor_data(y))[i]]++;
    for (int k = 0; k < 4; k++)
        expect_near((double)count[k] / COUNT, share[k], sqrt(share[k] * (1 - share[k]) / COUNT));
    ot_tensor_destroy(y);
}

static int n_equal(const ot_tensor *a, const ot_tensor *b)
{
    const float *x = ot_tensor_data_const(a), *y = ot_tensor_data_const(b);
    int n = 0;

    for (int i = 0; i < COUNT; i++)
        n += x[i] == y[i];
    return n;
}

static void draws_follow_seed_and_name_and_nothing_else(void **state)
{
    ot_tensor *a = run("y = RandomNormalLike(x)", "float[100000]");
    ot_tensor *again = run("z = RandomNormalLike(x) y = RandomNormalLike(x)", "float[100000]");
    ot_tensor *seeded = run("y = RandomNormalLike<seed = 5.0>(x)", "float[100000]");
    ot_tensor *another = run("z = RandomNormalLike(x) y = Identity(z)", "float[100000]");

    (void)state;
    assert_int_equal(n_equal(a, again), COUNT);
    assert_true(n_equal(a, seeded) < 100);
    assert_true(n_equal(a, another) < 100);
    ot_tensor_destroy(a);
    ot_tensor_destroy(again);
    ot_tensor_destroy(seeded);
    ot_tensor_destroy(another);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_the_distribution_that_is_stated),
        cmocka_unit_test(true_is_as_frequent_as_its_probability),
        cmocka_unit_test(classes_are_as_frequent_as_their_weights),
        cmocka_unit_test(draws_follow_seed_and_name_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
