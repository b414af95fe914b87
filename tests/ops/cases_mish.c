// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case mish_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-20,-1,0,0.5,30}"},
     .out = {"f32[5]{-4.12230724e-08,-0.303401461,0,0.375245211,30}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .out = {"f32[2,16,3,3]"}},
    {.name = "opset 18, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 18},
    {0},
};
OT_OP_TEST("Mish", 18, mish_cases)
static const ot_op_case mish_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-20,-1,0,0.5,30}"},
     .out = {"f32[5]{-3.91619187e-08,0.0592167559,0.6,0.886424375,1}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.MishGrad", 1, mish_grad_cases)
