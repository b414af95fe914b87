// SPDX-License-Identifier: Apache-2.0
// Values: ONNX Runtime's.
#include "harness.h"

static const ot_op_case gru_training_cases[] = {
    {.name = "as ONNX Runtime has it",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,3,1]{0.1,0.2,0.3}", "f32[1,3,1]{0.4,0.5,0.6}",
            "f32[1,6]{0.01,0.02,0.03,0.04,0.05,0.06}", "", "f32[1,1,1]{0.2}"},
     .attrs = "hidden_size = 1",
     .out = {"f32[2,1,1,1]{0.302222,0.17721}", "f32[1,1,1]{0.17721}",
             "f32[2,1,1,3]{0.557248,0.591459,0.430879,0.530185,0.530241,0.0361345}"}},
    {.name = "linear_before_reset",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,3,1]{0.1,0.2,0.3}", "f32[1,3,1]{0.4,0.5,0.6}",
            "f32[1,6]{0.01,0.02,0.03,0.04,0.05,0.06}", "", "f32[1,1,1]{0.2}"},
     .attrs = "hidden_size = 1, linear_before_reset = 1",
     .out = {"f32[2,1,1,1]{0.293291,0.157526}", "f32[1,1,1]{0.157526}"}},
    {.name = "random",
     .in = {"f32[4,3,2]", "f32[1,9,2]", "f32[1,9,3]"},
     .out = {"f32[4,1,3,3]", "f32[1,3,3]", "f32[4,1,3,9]"}},
    {.name = "R of another number of gates",
     .in = {"f32[4,3,2]", "f32[1,9,2]", "f32[1,8,3]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.GRUTraining", 1, gru_training_cases)
OT_OP_TEST_SHARED("ai.onnxtrain.GRUTraining", 1, gru_training_cases, gru_training_also)

// What ONNX Runtime's kernels refuse.
static const ot_op_case gru_training_limits[] = {
    {.name = "reverse",
     .in = {"f32[4,3,2]", "f32[1,9,2]", "f32[1,9,3]"},
     .attrs = "direction = \"reverse\"",
     .error = OT_ERR_INVALID},
    {.name = "other activations",
     .in = {"f32[4,3,2]", "f32[1,9,2]", "f32[1,9,3]"},
     .attrs = "activations = [\"Tanh\", \"Tanh\"]",
     .error = OT_ERR_INVALID},
    {.name = "sequence_lens",
     .in = {"f32[4,3,2]", "f32[1,9,2]", "f32[1,9,3]", "", "i32[3]{1,2,3}"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.GRUTraining", 1, gru_training_limits)

static const ot_op_case gru_training_general[] = {
    {.name = "two directions, every input",
     .in = {"f32[3,2,2]", "f32[2,6,2]", "f32[2,6,2]", "f32[2,12]", "i32[2]{2,3}", "f32[2,2,2]"},
     .attrs = "direction = \"bidirectional\", linear_before_reset = 1, clip = 1.5",
     .out = {"f32[3,2,2,2]", "f32[2,2,2]", "f32[3,2,2,6]"}},
    {.name = "gates in PyTorch's order",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,3,1]{0.2,0.1,0.3}", "f32[1,3,1]{0.5,0.4,0.6}",
            "f32[1,6]{0.01,0.02,0.03,0.04,0.05,0.06}", "", "f32[1,1,1]{0.2}"},
     .attrs = "gate_order = [1, 0, 2]",
     .out = {"f32[2,1,1,1]{0.302222,0.17721}", "f32[1,1,1]{0.17721}",
             "f32[2,1,1,3]{0.591459,0.557248,0.430879,0.530241,0.530185,0.0361345}"}},
    {.name = "a candidate that is not the last",
     .in = {"f32[4,3,2]", "f32[1,9,2]", "f32[1,9,3]"},
     .attrs = "gate_order = [0, 2, 1]",
     .error = OT_ERR_INVALID},
    {.name = "rows of a table",
     .in = {"f32[2,1]{-0.5,1}", "f32[1,3,1]{0.2,0.1,0.3}", "f32[1,3,1]{0.5,0.4,0.6}",
            "f32[1,6]{0.01,0.02,0.03,0.04,0.05,0.06}", "", "f32[1,1,1]{0.2}", "i32[2,1]{1,0}"},
     .attrs = "gate_order = [1, 0, 2]",
     .out = {"f32[2,1,1,1]{0.302222,0.17721}", "f32[1,1,1]{0.17721}",
             "f32[2,1,1,3]{0.591459,0.557248,0.430879,0.530241,0.530185,0.0361345}"}},
    {.name = "rows of a table, two directions, the batch first, every input",
     .in = {"f32[5,2]", "f32[2,6,2]", "f32[2,6,2]", "f32[2,12]", "i32[2]{2,3}", "f32[2,2,2]",
            "i64[2,3]{4,0,-1,3,0,0}"},
     .attrs = "direction = \"bidirectional\", indices_layout = 1",
     .out = {"f32[3,2,2,2]", "f32[2,2,2]", "f32[3,2,2,6]"}},
    {.name = "rows of a table, linear_before_reset",
     .in = {"f32[5,2]", "f32[1,6,2]", "f32[1,6,2]", "f32[1,12]", "", "", "i64[3,2]{4,0,-1,3,0,0}"},
     .attrs = "linear_before_reset = 1",
     .out = {"f32[3,1,2,2]", "f32[1,2,2]", "f32[3,1,2,6]"}},
    {.name = "a row that a table has not",
     .in = {"f32[5,2]", "f32[1,6,2]", "f32[1,6,2]", "", "", "", "i64[2,1]{4,-6}"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GRUTraining", 1, gru_training_general)
