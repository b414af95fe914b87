// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case fused_conv_cases[] = {
    RECORDED_FUSED_CONV,
    {.name = "along one axis",
     .in = {"f32[2,3,7]", "f32[4,3,2]", "f32[4]", "f32[2,4,6]"},
     .attrs = "activation = \"Tanh\"",
     .out = {"f32[2,4,6]"}},
    {.name = "large",
     .in = {"f32[2,16,20,20]", "f32[24,16,3,3]", "f32[24]"},
     .attrs = "activation = \"Relu\", pads = [1, 1, 1, 1]",
     .flags = OT_CASE_NO_GRAD},
    {.name = "no images",
     .in = {"f32[0,2,5,5]", "f32[3,2,3,3]"},
     .attrs = "activation = \"Sigmoid\"",
     .out = {"f32[0,3,3,3]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "an activation that is not known",
     .in = {"f32[1,2,5,5]", "f32[3,2,3,3]"},
     .attrs = "activation = \"Softplus\"",
     .error = OT_ERR_INVALID},
    {.name = "too few parameters",
     .in = {"f32[1,2,5,5]", "f32[3,2,3,3]"},
     .attrs = "activation = \"Clip\", activation_params = [1.0]",
     .error = OT_ERR_INVALID},
    {.name = "no parameters",
     .in = {"f32[1,2,5,5]", "f32[3,2,3,3]"},
     .attrs = "activation = \"LeakyRelu\"",
     .error = OT_ERR_INVALID},
    {.name = "Z of another shape",
     .in = {"f32[1,2,5,5]", "f32[3,2,3,3]", "", "f32[1,3,1,1]"},
     .error = OT_ERR_INVALID},
    {.name = "other channels", .in = {"f32[1,2,5,5]", "f32[3,4,3,3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.FusedConv", 1, fused_conv_cases)
