// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case shrink_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-0.5,0.25,0.5,1}"},
     .attrs = "lambd = 0.5, bias = 0.5",
     .out = {"f32[5]{-3.5,-0,0,0,0.5}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images",
     .in = {"f32[2,16,3,3]"},
     .attrs = "lambd = 0.5, bias = 0.5",
     .out = {"f32[2,16,3,3]"}},
    {.name = "opset 9, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 9},
    {0},
};
OT_OP_TEST("Shrink", 13, shrink_cases)
static const ot_op_case shrink_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-4,-0.5,0.25,0.5,1}"},
     .attrs = "lambd = 0.5, bias = 0.5",
     .out = {"f32[5]{1,0,0,0,1}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ShrinkGrad", 1, shrink_grad_cases)
