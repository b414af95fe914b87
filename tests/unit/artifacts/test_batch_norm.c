// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "artifacts/artifacts.h"
#include "evaluate.h"
#include "onnxtrain/onnxtrain.h"

// In training form as the classic exporter writes it, and in the new exporter's form.
#define BN_MODEL(opset, node)                                                                      \
    "<ir_version: 8, opset_import: [\"\" : " opset "]>"                                            \
    "g (float[N, 2] x) => (float[N, 2] y)"                                                         \
    "<float[2, 2] w = {1, 2, 3, 4}, float[2] scale = {1, 1}, float[2] bias = {0, 0},"              \
    " float[2] mean = {0.5, 0.5}, float[2] var = {1, 2}> { h = MatMul(x, w) " node                 \
    " y = Relu(n) }"

static const char classic[] =
    BN_MODEL("17", "[bn] n, rm, rv = BatchNormalization<epsilon = 1e-5, momentum = 0.9,"
                   " training_mode = 1>(h, scale, bias, mean, var)");
static const char dynamo[] = BN_MODEL(
    "18", "[bn] n = BatchNormalization<epsilon = 1e-5, momentum = 0.9>(h, scale, bias, mean, var)");
static const char opset13[] =
    BN_MODEL("13", "[bn] n, rm, rv, sm, sv = BatchNormalization<epsilon = 1e-5, momentum = 0.9>"
                   "(h, scale, bias, mean, var)");

static ot_artifacts *generate(const char *text, ot_batch_norm mode, const char *frozen)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options mse = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_text(text);
    ot_artifacts *artifacts;

    mse.loss = OT_LOSS_MSE;
    options.losses = &mse;
    options.n_losses = 1;
    options.batch_norm = mode;
    options.frozen = &frozen;
    options.n_frozen = frozen != NULL;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static void assert_batch_statistics(const ot_artifacts *artifacts)
{
    const ot_node *node = find_node(artifacts->training, "BatchNormInternal");

    assert_non_null(node);
    assert_string_equal(node->domain, "com.microsoft");
    assert_int_equal(node->n_outputs, 5);
    assert_int_equal(ot__node_attr(node, "training_mode")->i, 1);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "mean"), 0);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "var"), 0);
    assert_true(find_value(artifacts->training, "mean")->is_input);
    assert_true(find_value(artifacts->eval, "var")->is_input);
}

static void assert_inference_form(const ot_model *model)
{
    const ot_node *node = find_node(model, "BatchNormalization");

    assert_non_null(node);
    assert_int_equal(node->n_outputs, 1);
    if (ot__node_attr(node, "training_mode"))
        assert_int_equal(ot__node_attr(node, "training_mode")->i, 0);
}

static void trained_scales_use_batch_statistics_whatever_the_exporter_says(void **state)
{
    const char *const models[] = {classic, dynamo, opset13};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(models); i++) {
        ot_artifacts *artifacts = generate(models[i], OT_BATCH_NORM_AUTO, NULL);

        assert_batch_statistics(artifacts);
        assert_inference_form(artifacts->eval);
        ot_artifacts_destroy(artifacts);
    }
}

static void outputs_of_the_running_statistics_keep_their_names(void **state)
{
    ot_artifacts *artifacts = generate(classic, OT_BATCH_NORM_AUTO, NULL);
    const ot_node *node = find_node(artifacts->training, "BatchNormInternal");

    (void)state;
    assert_string_equal(node->outputs[1]->name, "rm");
    assert_string_equal(node->outputs[2]->name, "rv");
    ot_artifacts_destroy(artifacts);
}

static void frozen_scales_keep_their_stored_statistics(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const names[] = {"scale", "bias"};
    ot_model *model = read_text(classic);
    ot_artifacts *artifacts;

    (void)state;
    options.frozen = names;
    options.n_frozen = 2;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_null(find_node(artifacts->training, "BatchNormInternal"));
    assert_inference_form(artifacts->training);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "mean"), -1);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "w"), 1);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

// As exporters write a layer without scale and bias.
static void constant_scales_use_batch_statistics(void **state)
{
    static const char *const scales[] = {
        "one = Constant<value = float[2] {1, 1}>() zero = Constant<value = float[2] {0, 0}>()",
        "h_shape = Shape(h) w_shape = Slice(h_shape, at, end)"
        " c1 = Constant<value_float = 1.0>() c0 = Constant<value_float = 0.0>()"
        " one = Expand(c1, w_shape) zero = Expand(c0, w_shape)",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(scales); i++) {
        char text[1024];
        ot_artifacts *artifacts;

        snprintf(text, sizeof text,
                 "<ir_version: 8, opset_import: [\"\" : 18]> g (float[N, 2] x) => (float[N, 2] y)"
                 "<float[2, 2] w = {1, 2, 3, 4}, float[2] mean = {0.5, 0.5}, float[2] var = {1, 2},"
                 " int64[1] at = {1}, int64[1] end = {2}> { h = MatMul(x, w) %s"
                 " y = BatchNormalization(h, one, zero, mean, var) }",
                 scales[i]);
        artifacts = generate(text, OT_BATCH_NORM_AUTO, NULL);
        assert_batch_statistics(artifacts);
        assert_inference_form(artifacts->eval);
        ot_artifacts_destroy(artifacts);
    }
}

static void the_mode_overrides_the_rule(void **state)
{
    ot_artifacts *artifacts = generate(dynamo, OT_BATCH_NORM_STORED, NULL);

    (void)state;
    assert_inference_form(artifacts->training);
    ot_artifacts_destroy(artifacts);
    artifacts = generate(dynamo, OT_BATCH_NORM_BATCH, "scale");
    assert_batch_statistics(artifacts);
    ot_artifacts_destroy(artifacts);
}

static void running_statistics_behind_an_identity_or_in_a_constant_become_parameters(void **state)
{
    ot_artifacts *artifacts =
        generate(BN_MODEL("18", "m = Identity(mean) v = Constant<value = float[2] {3, 4}>()"
                                "[bn] n = BatchNormalization(h, scale, bias, m, v)"),
                 OT_BATCH_NORM_AUTO, NULL);

    (void)state;
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "mean"), 0);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "v"), 0);
    ot_artifacts_destroy(artifacts);
}

static void running_statistics_cannot_be_trained(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const names[] = {"scale", "mean"};
    ot_model *model = read_text(classic);
    ot_artifacts *artifacts;

    (void)state;
    options.trainable = names;
    options.n_trainable = 2;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_INVALID,
                 "'mean' holds running statistics of BatchNormalization 'bn'");
    ot_model_destroy(model);
}

static void a_training_output_that_is_read_is_refused(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const outputs[] = {"rm"};
    ot_model *model = read_text(classic);
    ot_artifacts *artifacts;

    (void)state;
    options.additional_outputs = outputs;
    options.n_additional_outputs = 1;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_UNSUPPORTED,
                 "output 1, 'rm', is read");
    ot_model_destroy(model);
}

// As the classic exporter writes F.batch_norm() of weights without running statistics: each filter
// has mean 0 and variance 1, in inference too.
static void weights_are_standardised_by_their_own_statistics(void **state)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>"
        "g (float[N, 3] x) => (float[N, 2] y)"
        "<float[2, 3] w = {1, 2, 6, -4, 0, 1}, int64[3] rows = {1, 2, -1}, int64[2] back = {2, 3}> "
        "{"
        " one = Constant<value = float[2] {1, 1}>() zero = Constant<value = float[2] {0, 0}>()"
        " r = Reshape(w, rows)"
        " n, m, v = BatchNormalization<training_mode = 1, epsilon = 0.5>(r, one, zero, zero, one)"
        " s = Reshape(n, back) y = Gemm<transB = 1>(x, s) }";
    ot_artifacts *artifacts = generate(text, OT_BATCH_NORM_AUTO, NULL);
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(1, 3), (const double[]){1, 0, -2}), *y = NULL;
    ot_model *exported;

    (void)state;
    assert_null(find_node(artifacts->training, "BatchNormInternal"));
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "w"), 1);
    assert_ok(ot_model_export_view(artifacts->eval, artifacts->checkpoint,
                                   (const char *const[]){"y"}, 1, &exported));
    assert_ok(ot_model_run(exported, NULL, (const ot_tensor *const[]){x}, 1, &y, 1));
    // Means 3 and -1, variances 14/3.
    assert_true(fabs(ot__tensor_get_f64(y, 0) - (-2 - 2 * 3) / sqrt(14.0 / 3 + 0.5)) < 1e-6);
    assert_true(fabs(ot__tensor_get_f64(y, 1) - (-3 - 2 * 2) / sqrt(14.0 / 3 + 0.5)) < 1e-6);
    ot_tensor_destroy(x);
    ot_tensor_destroy(y);
    ot_model_destroy(exported);
    ot_artifacts_destroy(artifacts);
}

static void computed_statistics_stay_as_the_model_computes_them(void **state)
{
    ot_artifacts *artifacts =
        generate(BN_MODEL("17", "s = ReduceMax<axes = [0], keepdims = 0>(x) m = Mul(mean, s)"
                                " n = BatchNormalization(h, scale, bias, m, var)"),
                 OT_BATCH_NORM_AUTO, NULL);

    (void)state;
    assert_null(find_node(artifacts->training, "BatchNormInternal"));
    assert_inference_form(artifacts->training);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "scale"), 1);
    assert_int_equal(ot_artifacts_note_count(artifacts), 1);
    assert_non_null(strstr(ot_artifacts_note(artifacts, 0, NULL), "BatchNormalization of 'n'"));
    ot_artifacts_destroy(artifacts);
}

// A batch normalisation writes its statistics: its scale is not to follow them.
static void a_constant_that_is_also_read_as_a_statistic_stays_constant(void **state)
{
    ot_artifacts *artifacts =
        generate(BN_MODEL("17", "one = Constant<value_floats = [1.0, 1.0]>()"
                                " zero = Constant<value_floats = [0.0, 0.0]>()"
                                " n = BatchNormalization(h, one, zero, zero, one)"),
                 OT_BATCH_NORM_AUTO, NULL);
    const ot_node *node = find_node(artifacts->training, "BatchNormInternal");

    (void)state;
    assert_non_null(node);
    assert_ptr_not_equal(node->inputs[1], node->inputs[4]);
    assert_ptr_not_equal(node->inputs[2], node->inputs[3]);
    assert_true(node->inputs[3]->is_input && node->inputs[4]->is_input);
    assert_false(node->inputs[1]->is_input || node->inputs[2]->is_input);
    ot_artifacts_destroy(artifacts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trained_scales_use_batch_statistics_whatever_the_exporter_says),
        cmocka_unit_test(outputs_of_the_running_statistics_keep_their_names),
        cmocka_unit_test(frozen_scales_keep_their_stored_statistics),
        cmocka_unit_test(constant_scales_use_batch_statistics),
        cmocka_unit_test(the_mode_overrides_the_rule),
        cmocka_unit_test(running_statistics_behind_an_identity_or_in_a_constant_become_parameters),
        cmocka_unit_test(running_statistics_cannot_be_trained),
        cmocka_unit_test(a_training_output_that_is_read_is_refused),
        cmocka_unit_test(weights_are_standardised_by_their_own_statistics),
        cmocka_unit_test(computed_statistics_stay_as_the_model_computes_them),
        cmocka_unit_test(a_constant_that_is_also_read_as_a_statistic_stays_constant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
