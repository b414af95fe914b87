// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case thresholded_relu_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{-4,0,0.5,0.75,2}"},
     .attrs = "alpha = 0.5",
     .out = {"f32[5]{0,0,0,0.75,2}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .attrs = "alpha = 0.5", .out = {"f32[2,16,3,3]"}},
    {.name = "opset 10, defaults", .in = {"f64[5,7]"}, .out = {"f64[5,7]"}, .opset = 10},
    {0},
};
OT_OP_TEST("ThresholdedRelu", 13, thresholded_relu_cases)
static const ot_op_case thresholded_relu_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[5]{1,1,1,1,1}", "f32[5]{-4,0,0.5,0.75,2}"},
     .attrs = "alpha = 0.5",
     .out = {"f32[5]{0,0,0,1,1}"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ThresholdedReluGrad", 1, thresholded_relu_grad_cases)
