// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"
#include "onnxtrain/onnxtrain.h"

static void dropout_does_not_train_in_the_eval_model(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[N, 2] x) => (float[N, 2] y)"
                                "<float[2] w = {1, 2}, float ratio = {0.5}, bool on = {1}>"
                                "{ a = Mul(x, w) y = Dropout(a, ratio, on) }");
    ot_artifacts *artifacts;
    const ot_node *node;

    (void)state;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    node = find_node(artifacts->eval, "Dropout");
    assert_int_equal(node->n_inputs, 3);
    assert_null(node->inputs[2]);
    assert_null(ot__graph_find(artifacts->eval->graph, "on"));
    node = find_node(artifacts->training, "Dropout");
    assert_string_equal(node->inputs[2]->name, "on");
    // Its gradient reads the mask, which the forward node did not write.
    assert_int_equal(node->n_outputs, 2);
    assert_non_null(find_node(artifacts->training, "DropoutGrad"));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

// Whatever training makes of it.
static void composed_operators_stay_in_the_eval_model(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 10, opset_import: [\"\" : 23]>"
                                "g (float[N, 2] x) => (float[N, 2] y)"
                                "<float[2] w = {1, 2}> { y = RMSNormalization(x, w) }");
    ot_artifacts *artifacts;

    (void)state;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_non_null(find_node(artifacts->eval, "RMSNormalization"));
    assert_null(find_node(artifacts->training, "RMSNormalization"));
    assert_non_null(find_node(artifacts->training, "SimplifiedLayerNormalizationGrad"));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static ot_artifacts *artifacts_of(const ot_model *model)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts;

    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    return artifacts;
}

// Outputs `more` and `both` are not of the loss; `both` needs an input that the loss does not.
static void outputs_of_the_model_can_be_exported_whatever_the_loss_takes(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[N, 2] x, float[N, 2] t) =>"
                                " (float[N, 2] y, float[N, 2] more, float[N, 2] both)"
                                "<float[2, 2] w = {1, 2, 3, 4}, float[2] b = {5, -6}>"
                                "{ h = MatMul(x, w) y = Relu(h) a = Add(h, b) more = Neg(a)"
                                "  both = Add(more, t) }");
    ot_artifacts *artifacts = artifacts_of(model);
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(1, 2), (const double[]){1, -1}), *y = NULL;
    ot_model *exported;

    (void)state;
    assert_int_equal(ot_model_output_count(artifacts->eval), 1); // the loss
    assert_int_equal(count_nodes(artifacts->eval, "Neg"), 1);
    assert_null(ot__graph_find(artifacts->eval->graph, "both"));
    assert_int_equal(count_nodes(artifacts->training, "Neg"), 0);
    assert_ok(ot_model_export_view(artifacts->eval, artifacts->checkpoint,
                                   (const char *const[]){"more"}, 1, &exported));
    assert_int_equal(ot_model_input_count(exported), 1);
    assert_ok(ot_model_run(exported, NULL, (const ot_tensor *const[]){x}, 1, &y, 1));
    assert_true(ot__tensor_get_f64(y, 0) == -(1 - 3 + 5));
    assert_true(ot__tensor_get_f64(y, 1) == -(2 - 4 - 6));
    ot_tensor_destroy(x);
    ot_tensor_destroy(y);
    ot_model_destroy(exported);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void operators_of_others_beside_the_loss_do_not_get_into_the_eval_model(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17, \"mine\" : 1]>"
                                "g (float[N, 2] x) => (float[N, 2] y, float[N, 2] z)"
                                "<float[2] w = {1, 2}> { y = Mul(x, w) z = mine.Thing(y) }");
    ot_artifacts *artifacts = artifacts_of(model);

    (void)state;
    assert_null(ot__graph_find(artifacts->eval->graph, "z"));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_does_not_train_in_the_eval_model),
        cmocka_unit_test(composed_operators_stay_in_the_eval_model),
        cmocka_unit_test(outputs_of_the_model_can_be_exported_whatever_the_loss_takes),
        cmocka_unit_test(operators_of_others_beside_the_loss_do_not_get_into_the_eval_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
