// SPDX-License-Identifier: Apache-2.0
// How recurrent layers stand in the artifacts: ONNX Runtime takes the inputs of its training form
// by position, and has it for the forward direction and by steps only.
#include "artifacts/artifacts.h"
#include "evaluate.h"

#define FOUR "0.1, -0.2, 0.3, 0.4"
#define TWELVE FOUR ", " FOUR ", " FOUR
#define SIXTEEN TWELVE ", " FOUR
#define LAYER(op, gates, directions, weights, attrs)                                               \
    "<ir_version: 8, opset_import: [\"\" : 17]>"                                                   \
    "g (float[3, N, 2] x) => (float[3, " directions ", N, 2] y)"                                   \
    "<float[" directions ", " gates ", 2] w = {" weights "},"                                      \
    " float[" directions ", " gates ", 2] r = {" weights "}>"                                      \
    " { y = " op "<hidden_size = 2" attrs ">(x, w, r) }"

static ot_artifacts *generate(const char *text)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options mse = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_text(text);
    ot_artifacts *artifacts;

    mse.loss = OT_LOSS_MSE;
    options.losses = &mse;
    options.n_losses = 1;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static void assert_node(const ot_model *model, const char *op, const char *domain, int n_inputs,
                        int n_outputs)
{
    const ot_node *node = find_node(model, op);

    assert_non_null(node);
    assert_string_equal(node->domain, domain);
    assert_int_equal(node->n_inputs, n_inputs);
    assert_int_equal(node->n_outputs, n_outputs);
    assert_int_equal(ot__node_attr(node, "hidden_size")->i, 2);
}

static void a_forward_lstm_trains_in_onnx_runtimes_form_with_every_input_named(void **state)
{
    ot_artifacts *artifacts = generate(LAYER("LSTM", "8", "1", SIXTEEN, ""));

    (void)state;
    assert_node(artifacts->training, "LSTMTraining", "com.microsoft", 8, 5);
    assert_node(artifacts->training, "LSTMGrad", "com.microsoft", 12, 7);
    assert_null(find_node(artifacts->training, "LSTM"));
    assert_node(artifacts->eval, "LSTM", "", 3, 1);
    ot_artifacts_destroy(artifacts);
}

static void a_forward_gru_trains_in_onnx_runtimes_form_with_every_input_named(void **state)
{
    ot_artifacts *artifacts = generate(LAYER("GRU", "6", "1", TWELVE, ""));

    (void)state;
    assert_node(artifacts->training, "GRUTraining", "com.microsoft", 6, 3);
    assert_node(artifacts->training, "GRUGrad", "com.microsoft", 10, 5);
    assert_node(artifacts->eval, "GRU", "", 3, 1);
    ot_artifacts_destroy(artifacts);
}

static void both_directions_train_as_two_forward_layers(void **state)
{
    ot_artifacts *artifacts =
        generate(LAYER("LSTM", "8", "2", SIXTEEN ", " SIXTEEN, ", direction = \"bidirectional\""));

    (void)state;
    assert_node(artifacts->training, "LSTMTraining", "com.microsoft", 8, 5);
    assert_int_equal(count_nodes(artifacts->training, "LSTMTraining"), 2);
    assert_int_equal(count_nodes(artifacts->training, "LSTMGrad"), 2);
    assert_null(ot_model_metadata(artifacts->training, "onnxtrain.onnxruntime"));
    assert_int_equal(artifacts->training->graph->n_inputs, 2 + 2 + 2 + 1); // w and r as they were
    assert_node(artifacts->eval, "LSTM", "", 3, 1);
    ot_artifacts_destroy(artifacts);
}

static void what_onnx_runtime_cannot_train_is_in_a_form_of_our_own_and_says_so(void **state)
{
    ot_artifacts *artifacts = generate(LAYER("LSTM", "8", "2", SIXTEEN ", " SIXTEEN,
                                             ", direction = \"bidirectional\", clip = 2.0"));

    (void)state;
    assert_node(artifacts->training, "LSTMTraining", "ai.onnxtrain", 8, 5);
    assert_node(artifacts->training, "LSTMGrad", "ai.onnxtrain", 13, 7);
    assert_string_equal(
        ot_model_metadata(artifacts->training, "onnxtrain.onnxruntime"),
        "not loadable: it has no operators ai.onnxtrain.LSTMTraining, ai.onnxtrain.LSTMGrad");
    assert_node(artifacts->eval, "LSTM", "", 3, 1);
    ot_artifacts_destroy(artifacts);
}

static void its_form_for_embedded_use_has_all_of_the_many_arguments(void **state)
{
    ot_artifacts *artifacts = generate(LAYER("LSTM", "8", "1", SIXTEEN, ""));
    ot__buf bytes = {0};
    ot_model *again = NULL;

    (void)state;
    assert_ok(ot__ort_write(artifacts->training, &bytes));
    assert_ok(ot__ort_read(bytes.data, bytes.length, NULL, "written", &again));
    assert_non_null(find_node(again, "LSTMGrad"));
    ot_model_destroy(again);
    ot__buf_deinit(&bytes);
    ot_artifacts_destroy(artifacts);
}

// ONNX Runtime runs no layer that has the batch first, neither in training nor in inference.
static void no_artifact_has_the_batch_first(void **state)
{
    ot_artifacts *artifacts =
        generate("<ir_version: 8, opset_import: [\"\" : 17]>"
                 "g (float[N, 3, 2] x) => (float[N, 3, 1, 2] y)"
                 "<float[1, 6, 2] w = {" TWELVE "}, float[1, 6, 2] r = {" TWELVE "}>"
                 " { y = GRU<hidden_size = 2, layout = 1>(x, w, r) }");

    (void)state;
    assert_node(artifacts->training, "GRUTraining", "com.microsoft", 6, 3);
    assert_node(artifacts->eval, "GRU", "", 3, 1);
    assert_null(ot__node_attr(find_node(artifacts->eval, "GRU"), "layout"));
    assert_int_equal(count_nodes(artifacts->eval, "Transpose"), 2);
    assert_string_equal(find_value(artifacts->eval, "y")->producer->op_type, "Transpose");
    ot_artifacts_destroy(artifacts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forward_lstm_trains_in_onnx_runtimes_form_with_every_input_named),
        cmocka_unit_test(a_forward_gru_trains_in_onnx_runtimes_form_with_every_input_named),
        cmocka_unit_test(both_directions_train_as_two_forward_layers),
        cmocka_unit_test(what_onnx_runtime_cannot_train_is_in_a_form_of_our_own_and_says_so),
        cmocka_unit_test(its_form_for_embedded_use_has_all_of_the_many_arguments),
        cmocka_unit_test(no_artifact_has_the_batch_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
