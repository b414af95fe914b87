// SPDX-License-Identifier: Apache-2.0
// Models of quantisation-aware training: FakeQuant where gradients pass, as ONNX Runtime has it,
// and the pairs that were exported in everything that is not the training model.
#include "artifacts/artifacts.h"
#include "evaluate.h"

#define MODEL(dw)                                                                                  \
    "<ir_version: 8, opset_import: [\"\" : 17]>"                                                   \
    "g (float[N, 3] x) => (float[N, 2] y)"                                                         \
    "<float[3, 2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6}, float[2] b = {0, 0},"                      \
    " float[2] ws = {0.01, 0.02}, int8[2] wz = {0, 0}, float xs = {0.02}, uint8 xz = {128}> {"     \
    " xq = QuantizeLinear(x, xs, xz) [back] xd = DequantizeLinear(xq, xs, xz)"                     \
    " wq = QuantizeLinear<axis = 1>(w, ws, wz) [weights] wd = " dw " y = Gemm(xd, wd, b) }"
static const char model_text[] = MODEL("DequantizeLinear<axis = 1>(wq, ws, wz)");

static ot_artifacts_options mse_options(ot_loss_options *loss)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    *loss = (ot_loss_options)OT_LOSS_OPTIONS_INIT;
    loss->loss = OT_LOSS_MSE;
    options.losses = loss;
    options.n_losses = 1;
    return options;
}

static void only_the_training_model_has_fake_quant(void **state)
{
    ot_loss_options loss;
    const ot_artifacts_options options = mse_options(&loss);
    ot_model *model = read_text(model_text);
    ot_artifacts *artifacts;
    const ot_node *node;

    (void)state;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_int_equal(count_nodes(artifacts->training, "FakeQuant"), 2);
    assert_int_equal(count_nodes(artifacts->training, "FakeQuantGrad"), 1); // of w, not of x
    assert_int_equal(count_nodes(artifacts->training, "QuantizeLinear"), 0);
    assert_int_equal(count_nodes(artifacts->training, "DequantizeLinear"), 0);
    node = find_value(artifacts->training, "xd")->producer;
    assert_string_equal(node->domain, "com.microsoft");
    assert_int_equal(node->n_outputs, 2); // ONNX Runtime wants the mask also where nothing reads it
    assert_string_equal(node->inputs[0]->name, "x");
    assert_string_equal(node->inputs[1]->name, "xs");
    assert_int_equal(node->inputs[2]->dtype, OT_F32);
    assert_true(ot__tensor_get_f64(node->inputs[2]->constant, 0) == 128);
    assert_int_equal(ot__node_attr(node, "quant_min")->i, 0);
    assert_int_equal(ot__node_attr(node, "quant_max")->i, 255);
    assert_int_equal(count_nodes(artifacts->eval, "QuantizeLinear"), 2);
    assert_int_equal(count_nodes(artifacts->eval, "DequantizeLinear"), 2);
    assert_int_equal(count_nodes(artifacts->eval, "FakeQuant"), 0);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static const ot_parameter_report *find_row(const ot_report *report, const char *name)
{
    for (int i = 0; i < ot_report_parameter_count(report); i++)
        if (strcmp(ot_report_parameter(report, i)->name, name) == 0)
            return ot_report_parameter(report, i);
    fail_msg("no parameter '%s'", name);
    return NULL;
}

static void weights_train_and_scales_do_not(void **state)
{
    ot_loss_options loss;
    const ot_artifacts_options options = mse_options(&loss);
    ot_model *model = read_text(model_text);
    ot_report *report;

    (void)state;
    assert_ok(ot_report_create(model, &options, &report));
    assert_true(ot_report_trainable(report));
    assert_int_equal(find_row(report, "w")->trainable, 1);
    assert_int_equal(find_row(report, "b")->trainable, 1);
    assert_int_equal(find_row(report, "ws")->trainable, 0);
    assert_non_null(strstr(find_row(report, "ws")->reason, "DequantizeLinear 'weights/"));
    assert_int_equal(find_row(report, "xs")->trainable, 0);
    ot_report_destroy(report);
    ot_model_destroy(model);
}

static void a_weight_that_comes_back_by_another_scale_says_so(void **state)
{
    ot_loss_options loss;
    const ot_artifacts_options options = mse_options(&loss);
    ot_model *model = read_text(MODEL("DequantizeLinear(wq, xs)"));
    ot_report *report;

    (void)state;
    assert_ok(ot_report_create(model, &options, &report));
    assert_int_equal(find_row(report, "w")->trainable, 0);
    assert_non_null(
        strstr(find_row(report, "w")->reason, "only through input 'x' of QuantizeLinear"));
    ot_report_destroy(report);
    ot_model_destroy(model);
}

static void a_failing_allocation_is_reported(void **state)
{
    ot_loss_options loss;
    const ot_artifacts_options options = mse_options(&loss);
    ot_model *model = read_text(model_text);
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int64_t n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot_artifacts *artifacts = NULL;

        ot__alloc_fail_after(n);
        st = ot_artifacts_generate(model, &options, &artifacts);
        ot__alloc_fail_after(-1);
        ot_artifacts_destroy(artifacts);
    }
    assert_int_equal(st, OT_OK);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_training_model_has_fake_quant),
        cmocka_unit_test(weights_train_and_scales_do_not),
        cmocka_unit_test(a_weight_that_comes_back_by_another_scale_says_so),
        cmocka_unit_test(a_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
