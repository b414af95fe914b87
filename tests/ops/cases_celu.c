// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case celu_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-0.5,-0.0001,0,1}"},
     .attrs = "alpha = 0.5",
     .out = {"f32[5]{-0.499832269,-0.316060279,-9.99900007e-05,0,1}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .attrs = "alpha = 0.5", .out = {"f32[2,16,3,3]"}},
    {.name = "opset 12, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 12},
    {0},
};
OT_OP_TEST("Celu", 13, celu_cases)
static const ot_op_case celu_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-4,-0.5,-0.0001,0,1}"},
     .attrs = "alpha = 0.5",
     .out = {"f32[5]{0.000335462628,0.367879441,0.99980002,1,1}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.CeluGrad", 1, celu_grad_cases)
