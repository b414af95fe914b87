// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case swish_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-1,0,0.5,4}"},
     .out = {"f32[5]{-0.0719448398,-0.268941421,0,0.311229666,3.92805516}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .out = {"f32[2,16,3,3]"}},
    {.name = "opset 24, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 24},
    {0},
};
OT_OP_TEST("Swish", 24, swish_cases)
static const ot_op_case swish_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-4,-1,0,0.5,4}"},
     .out = {"f32[5]{-0.0526646149,0.0723294881,0.5,0.739961187,1.05266461}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.SwishGrad", 1, swish_grad_cases)
