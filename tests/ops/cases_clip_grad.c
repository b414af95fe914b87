// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case clip_grad_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[6]{1,2,3,4,5,6}", "f32[6]{-2,-1,0,2,3,nan}", "f32[]{-1}", "f32[]{2}"},
     .out = {"f32[6]{0,2,3,4,0,0}"}},
    {.name = "below",
     .in = {"f32[3]{1,2,3}", "f32[3]{-1,0,1}", "f32[]{0}"},
     .out = {"f32[3]{0,2,3}"}},
    {.name = "above",
     .in = {"f32[3]{1,2,3}", "f32[3]{-1,0,1}", "", "f32[]{0}"},
     .out = {"f32[3]{1,2,0}"}},
    {.name = "no bounds", .in = {"f32[3]{1,2,3}", "f32[3]"}, .out = {"f32[3]{1,2,3}"}},
    {.name = "images",
     .in = {"f32[2,16,3,3]", "f32[2,16,3,3]", "f32[]{-1}", "f32[1]{1}"},
     .out = {"f32[2,16,3,3]"}},
    {.name = "large, f64",
     .in = {"f64[70,601]", "f64[70,601]", "f64[]{-1}", "f64[]{1}"},
     .out = {"f64[70,601]"}},
    {.name = "two bounds", .in = {"f32[2]", "f32[2]", "f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ClipGrad", 1, clip_grad_cases)
