// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case hard_sigmoid_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-2,0.5,2,3}"},
     .attrs = "alpha = 0.25",
     .out = {"f32[5]{0,0,0.625,1,1}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .attrs = "alpha = 0.25", .out = {"f32[2,16,3,3]"}},
    {.name = "opset 1, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 1},
    {0},
};
OT_OP_TEST("HardSigmoid", 13, hard_sigmoid_cases)
static const ot_op_case hard_sigmoid_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{0,0,0.625,1,1}"},
     .attrs = "alpha = 0.25",
     .out = {"f32[5]{0,0,0.25,0,0}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.HardSigmoidGrad", 1, hard_sigmoid_grad_cases)
