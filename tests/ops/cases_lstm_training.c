// SPDX-License-Identifier: Apache-2.0
// Values: ONNX Runtime's.
#include "harness.h"

static const ot_op_case lstm_training_cases[] = {
    {.name = "as ONNX Runtime has it",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,4,1]{0.1,0.2,0.3,0.4}", "f32[1,4,1]{0.4,0.5,0.6,0.7}",
            "f32[1,8]{0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08}", "", "f32[1,1,1]{0.2}",
            "f32[1,1,1]{-0.3}"},
     .attrs = "hidden_size = 1",
     .out = {"f32[2,1,1,1]{0.0800238,0.027988}", "f32[1,1,1]{0.027988}", "f32[1,1,1]{0.0554783}",
             "f32[2,1,1,1]{0.135574,0.0554783}",
             "f32[2,1,1,4]{0.559714,0.593873,0.627148,0.578363,0.510501,0.505003,0.499504,-0."
             "0239787}"}},
    {.name = "only what the gradient needs",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,4,1]{0.1,0.2,0.3,0.4}", "f32[1,4,1]{0.4,0.5,0.6,0.7}",
            "f32[1,8]{0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08}", "", "f32[1,1,1]{0.2}",
            "f32[1,1,1]{-0.3}"},
     .attrs = "hidden_size = 1",
     .out = {"f32[2,1,1,1]{0.0800238,0.027988}", "", "", "f32[2,1,1,1]{0.135574,0.0554783}",
             "f32[2,1,1,4]{0.559714,0.593873,0.627148,0.578363,0.510501,0.505003,0.499504,-0."
             "0239787}"}},
    {.name = "random",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .out = {"f32[4,1,3,3]", "f32[1,3,3]", "f32[1,3,3]", "f32[4,1,3,3]", "f32[4,1,3,12]"}},
    {.name = "cell states of another order",
     .in = {"f32[4,3,2]", "f32[1,8,2]", "f32[1,8,3]"},
     .error = OT_ERR_INVALID},
    {.name = "default activations by name",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "activations = [\"sigmoid\", \"Tanh\", \"tanh\"]",
     .out = {"f32[4,1,3,3]"}},
    {0},
};
OT_OP_TEST("com.microsoft.LSTMTraining", 1, lstm_training_cases)
OT_OP_TEST_SHARED("ai.onnxtrain.LSTMTraining", 1, lstm_training_cases, lstm_training_also)

// What ONNX Runtime's kernels refuse.
static const ot_op_case lstm_training_limits[] = {
    {.name = "reverse",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "direction = \"reverse\"",
     .error = OT_ERR_INVALID},
    {.name = "both directions",
     .in = {"f32[4,3,2]", "f32[2,12,2]", "f32[2,12,3]"},
     .attrs = "direction = \"bidirectional\"",
     .error = OT_ERR_INVALID},
    {.name = "other activations",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "activations = [\"Tanh\", \"Tanh\", \"Tanh\"]",
     .error = OT_ERR_INVALID},
    {.name = "a clip",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "clip = 0.5",
     .error = OT_ERR_INVALID},
    {.name = "coupled gates",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "input_forget = 1",
     .error = OT_ERR_INVALID},
    {.name = "sequence_lens",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]", "", "i32[3]{1,2,3}"},
     .error = OT_ERR_INVALID},
    {.name = "peepholes",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]", "", "", "", "", "f32[1,9]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.LSTMTraining", 1, lstm_training_limits)

static const ot_op_case lstm_training_general[] = {
    {.name = "two directions, every input",
     .in = {"f32[3,2,2]", "f32[2,8,2]", "f32[2,8,2]", "f32[2,16]", "i32[2]{2,3}", "f32[2,2,2]",
            "f32[2,2,2]", "f32[2,6]"},
     .attrs = "direction = \"bidirectional\", input_forget = 1, clip = 1.5",
     .out = {"f32[3,2,2,2]", "f32[2,2,2]", "f32[2,2,2]", "f32[3,2,2,2]", "f32[3,2,2,8]"}},
    {.name = "gates in PyTorch's order",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,4,1]{0.1,0.3,0.4,0.2}", "f32[1,4,1]{0.4,0.6,0.7,0.5}",
            "f32[1,8]{0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08}", "", "f32[1,1,1]{0.2}",
            "f32[1,1,1]{-0.3}"},
     .attrs = "gate_order = [0, 3, 1, 2]",
     .out = {"f32[2,1,1,1]{0.0800238,0.027988}", "f32[1,1,1]{0.027988}", "f32[1,1,1]{0.0554783}",
             "f32[2,1,1,1]{0.135574,0.0554783}",
             "f32[2,1,1,4]{0.559714,0.627148,0.578363,0.593873,0.510501,0.499504,-0.0239787,0."
             "505003}"}},
    {.name = "two directions, every input, gates in another order",
     .in = {"f32[3,2,2]", "f32[2,8,2]", "f32[2,8,2]", "f32[2,16]", "i32[2]{2,3}", "f32[2,2,2]",
            "f32[2,2,2]", "f32[2,6]"},
     .attrs = "direction = \"bidirectional\", gate_order = [2, 3, 1, 0]",
     .out = {"f32[3,2,2,2]", "f32[2,2,2]", "f32[2,2,2]", "f32[3,2,2,2]", "f32[3,2,2,8]"}},
    {.name = "an order of three gates",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "gate_order = [0, 1, 2]",
     .error = OT_ERR_INVALID},
    {.name = "an order with a gate twice",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "gate_order = [0, 1, 2, 2]",
     .error = OT_ERR_INVALID},
    {.name = "an order with a fifth gate",
     .in = {"f32[4,3,2]", "f32[1,12,2]", "f32[1,12,3]"},
     .attrs = "gate_order = [0, 1, 2, 4]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.LSTMTraining", 1, lstm_training_general)
