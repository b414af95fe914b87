// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case softsign_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-0.5,0,1,nan}"},
     .out = {"f32[5]{-0.8,-0.333333333,0,0.5,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .out = {"f32[2,16,3,3]"}},
    {.name = "f64, opset 22", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 22},
    {.name = "opset 1", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 1},
    {0},
};
OT_OP_TEST("Softsign", 13, softsign_cases)
static const ot_op_case softsign_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[4]{1,1,1,2}", "f32[4]{-4,-0.5,0,1}"},
     .out = {"f32[4]{0.04,0.444444444,1,0.5}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.SoftsignGrad", 1, softsign_grad_cases)
