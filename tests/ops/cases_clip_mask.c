// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case clip_mask_cases[] = {
    {.name = "bounds are within, NaN is not",
     .in = {"f32[6]{-2,-1,0,2,3,nan}", "f32[]{-1}", "f32[]{2}"},
     .out = {"f32[6]{-1,-1,0,2,2,nan}", "bool[6]{0,1,1,1,0,0}"}},
    {.name = "from below",
     .in = {"f32[4]{-1,0,1,inf}", "f32[]{0}"},
     .out = {"f32[4]{0,0,1,inf}", "bool[4]{0,1,1,1}"}},
    {.name = "from above",
     .in = {"f32[4]{-inf,-1,0,1}", "", "f32[]{0}"},
     .out = {"f32[4]{-inf,-1,0,0}", "bool[4]{1,1,1,0}"}},
    {.name = "bounds that cross",
     .in = {"f32[3]{0,1,3}", "f32[]{2}", "f32[]{1}"},
     .out = {"f32[3]{1,1,1}", "bool[3]{0,0,0}"}},
    {.name = "images",
     .in = {"f32[2,16,3,3]", "f32[]{-1}", "f32[1]{1}"},
     .out = {"f32[2,16,3,3]", "bool[2,16,3,3]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[]{-1}", "f32[]{1}"},
     .out = {"f32[70,601]", "bool[70,601]"}},
    {.name = "f64",
     .in = {"f64[6]{-2,-1,0,2,3,nan}", "f64[]{-1}", "f64[]{2}"},
     .out = {"f64[6]{-1,-1,0,2,2,nan}", "bool[6]{0,1,1,1,0,0}"}},
    {.name = "empty", .in = {"f32[0]", "f32[]{0}"}, .out = {"f32[0]", "bool[0]"}},
    {.name = "two bounds", .in = {"f32[2]", "f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ClipMask", 1, clip_mask_cases)
