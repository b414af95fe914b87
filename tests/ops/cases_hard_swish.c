// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case hard_swish_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-3,-1,2.5,3}"},
     .out = {"f32[5]{-0,-0,-0.333333333,2.29166667,3}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .out = {"f32[2,16,3,3]"}},
    {.name = "opset 14, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 14},
    {0},
};
OT_OP_TEST("HardSwish", 14, hard_swish_cases)
static const ot_op_case hard_swish_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-4,-3,-1,2.5,3}"},
     .out = {"f32[5]{0,0,0.166666667,1.33333333,1}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.HardSwishGrad", 1, hard_swish_grad_cases)
