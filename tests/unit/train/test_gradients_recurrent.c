// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as they train: by steps, each direction forwards, in all that ONNX Runtime has a
// training form for; values and gradients against the layers as they were, in f64.
#include "gradients_fixture.h"

#define F "double"
// Steps, batch (N), inputs and hidden units are 4, 2, 3 and 2.
#define LAYER(op, gates, directions, more_in, call, attrs, y)                                      \
    HEAD "g (" F "[4,N,3] x, " F "[" directions "," gates ",3] w, " F "[" directions "," gates     \
         ",2] r" more_in ") => (" F y "{ " call " = " op "<hidden_size = 2" attrs ">"
#define BIAS(op_gates, directions) ", " F "[" directions "," op_gates "] b"
#define STATE(directions, name) ", " F "[" directions ",N,2] " name

static const char *const wrt[] = {"x", "w", "r", "b", "h", "c"};

static ot_model *gradient_model(const char *text, int n_wrt)
{
    ot_model *model = model_of(text), *copy;
    ot_gradients *g = NULL;

    assert_ok(ot_gradients_create(model, "y", wrt, n_wrt, NULL, &g));
    assert_ok(ot__model_clone(ot_gradients_model(g), &copy));
    ot_gradients_destroy(g);
    ot_model_destroy(model);
    return copy;
}

// All gradients, and that what is left has these nodes.
static void check(const char *text, int n_wrt, const char *training, const char *domain, int n)
{
    ot_model *model = gradient_model(text, n_wrt);

    free(check_gradients(text, wrt, n_wrt));
    assert_int_equal(count_nodes(model, training), n);
    assert_string_equal(find_node(model, training)->domain, domain);
    assert_null(find_node(model, "LSTM"));
    assert_null(find_node(model, "GRU"));
    ot_model_destroy(model);
}

static void reverse_layers_are_forward_layers_over_reversed_steps(void **state)
{
    (void)state;
    check(LAYER("LSTM", "8", "1", BIAS("16", "1") STATE("1", "h") STATE("1", "c"), "y",
                ", direction = \"reverse\"", "[4,1,N,2] y)") "(x, w, r, b, , h, c) }",
          6, "LSTMTraining", "com.microsoft", 1);
    check(LAYER("GRU", "6", "1", BIAS("12", "1") STATE("1", "h"), "y", ", direction = \"reverse\"",
                "[4,1,N,2] y)") "(x, w, r, b, , h) }",
          5, "GRUTraining", "com.microsoft", 1);
}

static void both_directions_are_two_forward_layers(void **state)
{
    (void)state;
    check(LAYER("LSTM", "8", "2", BIAS("16", "2") STATE("2", "h") STATE("2", "c"), "y",
                ", direction = \"bidirectional\"", "[4,2,N,2] y)") "(x, w, r, b, , h, c) }",
          6, "LSTMTraining", "com.microsoft", 2);
    check(LAYER("GRU", "6", "2", BIAS("12", "2") STATE("2", "h"), "y",
                ", direction = \"bidirectional\", linear_before_reset = 1",
                "[4,2,N,2] y)") "(x, w, r, b, , h) }",
          5, "GRUTraining", "com.microsoft", 2);
    // Their defaults by name
    check(LAYER("GRU", "6", "2", BIAS("12", "2"), "y",
                ", direction = \"bidirectional\","
                " activations = [\"Sigmoid\", \"Tanh\", \"sigmoid\", \"tanh\"]",
                "[4,2,N,2] y)") "(x, w, r, b) }",
          4, "GRUTraining", "com.microsoft", 2);
}

static void bias_and_states_may_be_omitted(void **state)
{
    (void)state;
    check(LAYER("LSTM", "8", "2", "", "y", ", direction = \"bidirectional\"",
                "[4,2,N,2] y)") "(x, w, r) }",
          3, "LSTMTraining", "com.microsoft", 2);
    check(
        LAYER("GRU", "6", "1", "", "y", ", direction = \"reverse\"", "[4,1,N,2] y)") "(x, w, r) }",
        3, "GRUTraining", "com.microsoft", 1);
}

static void last_states_of_each_direction_have_gradients(void **state)
{
    (void)state;
    check(LAYER("LSTM", "8", "2", BIAS("16", "2") STATE("2", "h") STATE("2", "c"), ", last, cells",
                ", direction = \"bidirectional\"", "[2,N,2] y)") "(x, w, r, b, , h, c)"
                                                                 " s = Mul(last, cells)"
                                                                 " y = Add(s, last) }",
          6, "LSTMTraining", "com.microsoft", 2);
    check(LAYER("GRU", "6", "2", BIAS("12", "2"), "all, last", ", direction = \"bidirectional\"",
                "[4,2,N,2] y)") "(x, w, r, b) y = Add(all, last) }",
          4, "GRUTraining", "com.microsoft", 2);
}

#define BATCH_FIRST(op, gates, directions, more_in, call, attrs, y)                                \
    HEAD "g (" F "[N,4,3] x, " F "[" directions "," gates ",3] w, " F "[" directions "," gates     \
         ",2] r" more_in ") => (" F y "{ " call " = " op "<hidden_size = 2, layout = 1" attrs ">"
#define BATCH_STATE(directions, name) ", " F "[N," directions ",2] " name

static void the_batch_may_come_first(void **state)
{
    (void)state;
    check(BATCH_FIRST("LSTM", "8", "1", BIAS("16", "1") BATCH_STATE("1", "h") BATCH_STATE("1", "c"),
                      "y", "", "[N,4,1,2] y)") "(x, w, r, b, , h, c) }",
          6, "LSTMTraining", "com.microsoft", 1);
    check(BATCH_FIRST("LSTM", "8", "2", BIAS("16", "2") BATCH_STATE("2", "h") BATCH_STATE("2", "c"),
                      ", last, cells", ", direction = \"bidirectional\"",
                      "[N,2,2] y)") "(x, w, r, b, , h, c) y = Mul(last, cells) }",
          6, "LSTMTraining", "com.microsoft", 2);
    check(BATCH_FIRST("GRU", "6", "2", BIAS("12", "2") BATCH_STATE("2", "h"), "y",
                      ", direction = \"bidirectional\"", "[N,4,2,2] y)") "(x, w, r, b, , h) }",
          5, "GRUTraining", "com.microsoft", 2);
    check(BATCH_FIRST("RNN", "2", "2", BIAS("4", "2") BATCH_STATE("2", "h"), "y",
                      ", direction = \"bidirectional\"", "[N,4,2,2] y)") "(x, w, r, b, , h) }",
          5, "RNNGrad", "ai.onnxtrain", 1);
}

// What has no such form: clip, coupled gates, other activations, sequences of different length,
// peepholes.
static void other_layers_train_in_a_form_of_our_own(void **state)
{
    (void)state;
    check(LAYER("LSTM", "8", "2", BIAS("16", "2"), "y",
                ", direction = \"bidirectional\", clip = 1.5, input_forget = 1",
                "[4,2,N,2] y)") "(x, w, r, b) }",
          4, "LSTMTraining", "ai.onnxtrain", 1);
    check(BATCH_FIRST("GRU", "6", "1", BIAS("12", "1"), "y",
                      ", direction = \"reverse\", activations = [\"Sigmoid\", \"Softsign\"]",
                      "[N,4,1,2] y)") "(x, w, r, b) }",
          4, "GRUTraining", "ai.onnxtrain", 1);
    check(LAYER("LSTM", "8", "2", BIAS("16", "2") STATE("2", "h") STATE("2", "c") ", " F "[2,6] p",
                "y", ", direction = \"bidirectional\"", "[4,2,N,2] y)") "(x, w, r, b, , h, c, p) }",
          6, "LSTMTraining", "ai.onnxtrain", 1);
    check(LAYER("GRU", "6", "2", BIAS("12", "2") STATE("2", "h"), "y",
                ", direction = \"bidirectional\"",
                "[4,2,N,2] y) <int32[2] n = {4, 2}>") "(x, w, r, b, n, h) }",
          5, "GRUTraining", "ai.onnxtrain", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reverse_layers_are_forward_layers_over_reversed_steps),
        cmocka_unit_test(both_directions_are_two_forward_layers),
        cmocka_unit_test(bias_and_states_may_be_omitted),
        cmocka_unit_test(last_states_of_each_direction_have_gradients),
        cmocka_unit_test(the_batch_may_come_first),
        cmocka_unit_test(other_layers_train_in_a_form_of_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
