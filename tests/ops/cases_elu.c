// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case elu_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,-0.5,-0.0001,0,1}"},
     .attrs = "alpha = 0.5",
     .out = {"f32[5]{-0.490842181,-0.19673467,-4.99975001e-05,0,1}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .attrs = "alpha = 0.5", .out = {"f32[2,16,3,3]"}},
    {.name = "opset 1, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 1},
    {0},
};
OT_OP_TEST("Elu", 13, elu_cases)
static const ot_op_case elu_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-4,-0.5,-0.0001,0,1}"},
     .attrs = "alpha = 0.5",
     .out = {"f32[5]{0.00915781944,0.30326533,0.499950002,0.5,1}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.EluGrad", 1, elu_grad_cases)
