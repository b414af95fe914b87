// SPDX-License-Identifier: Apache-2.0
// Values: ONNX Runtime's.
#include "harness.h"

static const ot_op_case gru_grad_cases[] = {
    {.name = "as ONNX Runtime has it",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,3,1]{0.1,0.2,0.3}", "f32[1,3,1]{0.4,0.5,0.6}",
            "f32[1,6]{0.01,0.02,0.03,0.04,0.05,0.06}", "", "f32[1,1,1]{0.2}",
            "f32[2,1,1,1]{0.302222,0.17721}",
            "f32[2,1,1,3]{0.557248,0.591459,0.430879,0.530185,0.530241,0.0361345}",
            "f32[2,1,1,1]{1,2}", "f32[1,1,1]{0.5}"},
     .attrs = "hidden_size = 1",
     .out = {"f32[2,1,1]{0.291872,0.379067}", "f32[1,3,1]{-0.241857,0.00269255,0.419951}",
             "f32[1,3,1]{0.0182763,0.0218489,0.307029}",
             "f32[1,6]{0.00669108,0.0821649,2.17946,0.00669108,0.0821649,2.17946}",
             "f32[1,1,1]{1.86367}"},
     .tolerance = 10},
    {.name = "linear_before_reset",
     .in = {"f32[2,1,1]{1,-0.5}", "f32[1,3,1]{0.1,0.2,0.3}", "f32[1,3,1]{0.4,0.5,0.6}",
            "f32[1,6]{0.01,0.02,0.03,0.04,0.05,0.06}", "", "f32[1,1,1]{0.2}",
            "f32[2,1,1,1]{0.2932914,0.1575259}",
            "f32[2,1,1,3]{0.5572479,0.591459,0.410708,0.5292956,0.5291284,0.004860963}",
            "f32[2,1,1,1]{1,2}", "f32[1,1,1]{0.5}"},
     .attrs = "hidden_size = 1, linear_before_reset = 1",
     .out = {"f32[2,1,1]{0.303941,0.384822}", "f32[1,3,1]{-0.235557,0.0102852,0.44343}",
             "f32[1,3,1]{0.0235434,0.0292666,0.304669}",
             "f32[1,6]{0.0339178,0.114062,2.20853,0.0339178,0.114062,1.23291}",
             "f32[1,1,1]{1.89243}"},
     .tolerance = 10},
    {.name = "random, many rows",
     .in = {"f32[9,5,12]", "f32[1,60,12]", "f32[1,60,20]", "f32[1,120]", "", "", "f32[9,1,5,20]",
            "f32[9,1,5,60] in 0.1..0.9", "f32[9,1,5,20]"},
     .attrs = "linear_before_reset = 0",
     .out = {"f32[9,5,12]", "f32[1,60,12]", "f32[1,60,20]", "f32[1,120]", "f32[1,5,20]"}},
    {.name = "random, many rows, linear_before_reset",
     .in = {"f32[9,5,12]", "f32[1,60,12]", "f32[1,60,20]", "f32[1,120]", "", "", "f32[9,1,5,20]",
            "f32[9,1,5,60] in 0.1..0.9", "f32[9,1,5,20]"},
     .attrs = "linear_before_reset = 1",
     .out = {"f32[9,5,12]", "f32[1,60,12]", "f32[1,60,20]", "f32[1,120]", "f32[1,5,20]"}},
    {.name = "gates of another width",
     .in = {"f32[2,1,1]", "f32[1,6,1]", "f32[1,6,2]", "", "", "", "f32[2,1,1,2]", "f32[2,1,1,8]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.GRUGrad", 1, gru_grad_cases)
OT_OP_TEST_SHARED("ai.onnxtrain.GRUGrad", 1, gru_grad_cases, gru_grad_also)

// What ONNX Runtime's kernels refuse.
static const ot_op_case gru_grad_limits[] = {
    {.name = "reverse",
     .in = {"f32[2,1,1]", "f32[1,6,1]", "f32[1,6,2]", "", "", "", "f32[2,1,1,2]", "f32[2,1,1,6]"},
     .attrs = "direction = \"reverse\"",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.GRUGrad", 1, gru_grad_limits)

static const ot_op_case gru_grad_general[] = {
    {.name = "two directions, every input",
     .in = {"f32[3,2,2]", "f32[2,6,2]", "f32[2,6,2]", "f32[2,12]", "i32[2]{2,3}", "f32[2,2,2]",
            "f32[3,2,2,2]", "f32[3,2,2,6] in 0.1..0.9", "f32[3,2,2,2]", "f32[2,2,2]"},
     .attrs = "direction = \"bidirectional\"",
     .out = {"f32[3,2,2]", "f32[2,6,2]", "f32[2,6,2]", "f32[2,12]", "f32[2,2,2]"}},
    {.name = "more rows of all steps than are computed at once, forward",
     .in = {"f32[5,50,3]", "f32[1,12,3]", "f32[1,12,4]", "f32[1,24]", "i32[50] in 0..5",
            "f32[1,50,4]", "f32[5,1,50,4]", "f32[5,1,50,12] in 0.1..0.9", "f32[5,1,50,4]",
            "f32[1,50,4]"},
     .attrs = "linear_before_reset = 0, direction = \"forward\"",
     .out = {"f32[5,50,3]", "f32[1,12,3]", "f32[1,12,4]", "f32[1,24]", "f32[1,50,4]"}},
    {.name = "more rows of all steps than are computed at once, reverse",
     .in = {"f32[5,50,3]", "f32[1,12,3]", "f32[1,12,4]", "f32[1,24]", "i32[50] in 0..5",
            "f32[1,50,4]", "f32[5,1,50,4]", "f32[5,1,50,12] in 0.1..0.9", "f32[5,1,50,4]",
            "f32[1,50,4]"},
     .attrs = "linear_before_reset = 1, direction = \"reverse\"",
     .out = {"f32[5,50,3]", "f32[1,12,3]", "f32[1,12,4]", "f32[1,24]", "f32[1,50,4]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GRUGrad", 1, gru_grad_general)
