// How recurrent layers stand in the artifacts: ONNX Runtime takes the inputs of its training form
// by position, and has it for the forward direction only.
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

static void both_directions_train_in_a_form_of_our_own(void **state)
{
    ot_artifacts *artifacts =
        generate(LAYER("LSTM", "8", "2", SIXTEEN ", " SIXTEEN, ", direction = \"bidirectional\""));

    (void)state;
    assert_node(artifacts->training, "LSTMTraining", "ai.onnxtrain", 8, 5);
    assert_node(artifacts->training, "LSTMGrad", "ai.onnxtrain", 13, 7);
    assert_node(artifacts->eval, "LSTM", "", 3, 1);
    ot_artifacts_destroy(artifacts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forward_lstm_trains_in_onnx_runtimes_form_with_every_input_named),
        cmocka_unit_test(a_forward_gru_trains_in_onnx_runtimes_form_with_every_input_named),
        cmocka_unit_test(both_directions_train_in_a_form_of_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
