// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "artifacts/artifacts.h"
#include "evaluate.h"

static const char by_nodes[] = "<ir_version: 8, opset_import: [\"\" : 17]>"
                               "g (float[N, 50] x) => (float[N, 40] y) {"
                               "  w = RandomNormal<shape = [50, 40], mean = 1.0, scale = 0.5>()"
                               "  b = RandomUniform<shape = [40], low = -2.0, high = 4.0>()"
                               "  h = MatMul(x, w) y = Add(h, b) }";

static ot_model *initialise(const char *text, uint64_t seed, const char *init)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text(text);

    options.seed = seed;
    options.init = &init;
    options.n_init = init != NULL;
    assert_ok(ot__init_parameters(model, &options));
    return model;
}

typedef struct moments {
    double mean, deviation, low, high;
} moments;

static moments moments_of(const ot_model *model, const char *name)
{
    const ot_tensor *tensor = find_value(model, name)->constant;
    const double n = (double)ot_tensor_count(tensor);
    moments m = {.low = INFINITY, .high = -INFINITY};
    double sum = 0.0, squares = 0.0;

    for (int64_t k = 0; k < ot_tensor_count(tensor); k++) {
        const double value = ot__tensor_get_f64(tensor, k);

        sum += value;
        squares += value * value;
        m.low = fmin(m.low, value);
        m.high = fmax(m.high, value);
    }
    m.mean = sum / n;
    m.deviation = sqrt(squares / n - m.mean * m.mean);
    return m;
}

static void random_nodes_of_constant_shape_become_parameters(void **state)
{
    ot_model *model = initialise(by_nodes, 1, NULL);
    const moments w = moments_of(model, "w"), b = moments_of(model, "b");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    assert_true(find_value(model, "w")->is_initializer);
    assert_true(fabs(w.mean - 1.0) < 0.05 && fabs(w.deviation - 0.5) < 0.03);
    assert_true(b.low >= -2.0 && b.high < 4.0 && b.low < -1.0 && b.high > 3.0);
    ot_model_destroy(model);
}

static void the_seed_decides_the_values(void **state)
{
    ot_model *models[] = {initialise(by_nodes, 1, NULL), initialise(by_nodes, 1, NULL),
                          initialise(by_nodes, 2, NULL)};
    const ot_tensor *w[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        w[i] = find_value(models[i], "w")->constant;
    assert_memory_equal(w[0]->data, w[1]->data, w[0]->n_bytes);
    assert_memory_not_equal(w[0]->data, w[2]->data, w[0]->n_bytes);
    for (int i = 0; i < 3; i++)
        ot_model_destroy(models[i]);
}

static void like_nodes_take_the_shape_of_a_constant(void **state)
{
    ot_model *model = initialise("<ir_version: 8, opset_import: [\"\" : 17]>"
                                 "g (float[3] x) => (float[3] y) <double[3] like = {0, 0, 0}> {"
                                 "  w = RandomUniformLike<dtype = 1>(like)"
                                 "  n = RandomNormalLike(x) m = Mul(x, w) y = Add(m, n) }",
                                 1, NULL);

    (void)state;
    assert_int_equal(find_value(model, "w")->constant->dtype, OT_F32);
    assert_int_equal(ot_tensor_count(find_value(model, "w")->constant), 3);
    assert_non_null(find_node(model, "RandomNormalLike")); // noise at run time
    ot_model_destroy(model);
}

static const char weights[] = "<ir_version: 8, opset_import: [\"\" : 17]>"
                              "g (float[N, 50] x) => (float[N, 40] y) {"
                              "  w = RandomNormal<shape = [50, 40]>()"
                              "  t = RandomNormal<shape = [30, 40]>()"
                              "  k = RandomNormal<shape = [16, 8, 3, 3]>()"
                              "  b = RandomNormal<shape = [40]>()"
                              "  h = MatMul(x, w) g = Gemm<transB = 1>(h, t) y = Add(h, b) }";

// Bounds and deviations as torch.nn.init states them.
static void patterns_draw_by_the_fan_of_the_weight(void **state)
{
    ot_model *model = initialise(weights, 1, "*=kaiming_uniform");
    moments m = moments_of(model, "w");

    (void)state;
    assert_true(m.high <= sqrt(6.0 / 50) && m.high > 0.98 * sqrt(6.0 / 50)); // [in, out]
    assert_true(m.low >= -sqrt(6.0 / 50) && m.low < -0.98 * sqrt(6.0 / 50));
    m = moments_of(model, "t");
    assert_true(m.high <= sqrt(6.0 / 40) && m.high > 0.97 * sqrt(6.0 / 40)); // [out, in]
    m = moments_of(model, "k");
    assert_true(m.high <= sqrt(6.0 / 72) && m.high > 0.97 * sqrt(6.0 / 72));
    ot_model_destroy(model);
    model = initialise(weights, 1, "w=kaiming_normal");
    assert_true(fabs(moments_of(model, "w").deviation / sqrt(2.0 / 50) - 1.0) < 0.05);
    ot_model_destroy(model);
    model = initialise(weights, 1, "k=xavier_normal");
    assert_true(fabs(moments_of(model, "k").deviation / sqrt(2.0 / (72 + 144)) - 1.0) < 0.07);
    ot_model_destroy(model);
    model = initialise(weights, 1, "w=xavier_uniform");
    m = moments_of(model, "w");
    assert_true(m.high <= sqrt(6.0 / 90) && m.high > 0.98 * sqrt(6.0 / 90));
    ot_model_destroy(model);
}

static void zeros_and_ones_fill_any_shape(void **state)
{
    ot_model *model = initialise(weights, 1, "b=ones");

    (void)state;
    assert_true(moments_of(model, "b").low == 1.0 && moments_of(model, "b").high == 1.0);
    ot_model_destroy(model);
    model = initialise(weights, 1, "b=zeros");
    assert_true(moments_of(model, "b").low == 0.0 && moments_of(model, "b").high == 0.0);
    ot_model_destroy(model);
}

static void wildcards_leave_out_what_has_no_fan(void **state)
{
    ot_model *plain = initialise(weights, 1, NULL),
             *model = initialise(weights, 1, "*=xavier_normal");

    (void)state;
    assert_memory_equal(find_value(plain, "b")->constant->data,
                        find_value(model, "b")->constant->data,
                        find_value(plain, "b")->constant->n_bytes);
    ot_model_destroy(plain);
    ot_model_destroy(model);
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *init, *message;
        ot_status status;
    } rows[] = {{"w", "expected <pattern>=<kind>", OT_ERR_INVALID},
                {"w=magic", "expected <pattern>=<kind>", OT_ERR_INVALID},
                {"nope=zeros", "'nope=zeros' matches no initializer", OT_ERR_NOT_FOUND},
                {"b=xavier_normal", "shape [40] has no fan-in", OT_ERR_INVALID}};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(rows); i++) {
        ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
        ot_model *model = read_text(weights);

        options.init = &rows[i].init;
        options.n_init = 1;
        assert_fails(ot__init_parameters(model, &options), rows[i].status, rows[i].message);
        ot_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_nodes_of_constant_shape_become_parameters),
        cmocka_unit_test(the_seed_decides_the_values),
        cmocka_unit_test(like_nodes_take_the_shape_of_a_constant),
        cmocka_unit_test(patterns_draw_by_the_fan_of_the_weight),
        cmocka_unit_test(zeros_and_ones_fill_any_shape),
        cmocka_unit_test(wildcards_leave_out_what_has_no_fan),
        cmocka_unit_test(mistakes_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
