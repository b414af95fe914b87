// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case selu_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-0.5,-0.0001,0,1}"},
     .out = {"f32[5]{-1.72589863,-0.691758188,-0.000175801144,0,1.05070099}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .out = {"f32[2,16,3,3]"}},
    {.name = "opset 6, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 6},
    {0},
};
OT_OP_TEST("Selu", 13, selu_cases)
static const ot_op_case selu_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-4,-0.5,-0.0001,0,1}"},
     .out = {"f32[5]{0.0322007127,1.06634115,1.75792354,1.75809934,1.05070099}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.SeluGrad", 1, selu_grad_cases)
