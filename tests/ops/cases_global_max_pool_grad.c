// SPDX-License-Identifier: Apache-2.0
// Checked against central differences by the cases of GlobalMaxPool; here values by hand.
#include "harness.h"

static const ot_op_case global_max_pool_grad_cases[] = {
    {.name = "two axes",
     .in = {"f32[1,2,1,1]{5,-3}", "f32[1,2,2,2]{1,3,2,0,-1,-2,-4,-3}", "f32[1,2,1,1]{3,-1}"},
     .out = {"f32[1,2,2,2]{0,5,0,0,-3,0,0,0}"}},
    {.name = "equal maxima",
     .in = {"f32[2,1,1]{3,8}", "f32[2,1,4]{1,1,0,1,2,-1,2,-1}", "f32[2,1,1]{1,2}"},
     .out = {"f32[2,1,4]{3,0,0,0,8,0,0,0}"}},
    {.name = "not a number",
     .in = {"f32[1,1,1]{3}", "f32[1,1,2]{1,nan}", "f32[1,1,1]{nan}"},
     .out = {"f32[1,1,2]{0,3}"}},
    {.name = "many planes",
     .in = {"f32[9,40,1,1]", "f32[9,40,7,7] in 0..0", "f32[9,40,1,1] in 0..0"}},
    {.name = "edges of registers",
     .in = {"f32[2,3,1,1]", "f32[2,3,1,W] in 0..0", "f32[2,3,1,1] in 0..0"},
     .edges = "W pool_lanes+"},
    {.name = "empty batch",
     .in = {"f32[0,3,1,1]", "f32[0,3,3,2]", "f32[0,3,1,1]"},
     .out = {"f32[0,3,3,2]"}},
    {.name = "dY of another shape",
     .in = {"f32[1,2,1]", "f32[1,1,4]", "f32[1,1,1]"},
     .error = OT_ERR_INVALID},
    {.name = "Y of other planes",
     .in = {"f32[1,2,1]", "f32[1,1,4]", "f32[1,2,1]"},
     .error = OT_ERR_INVALID},
    {.name = "Y has more than one element a plane",
     .in = {"f32[1,1,2]", "f32[1,1,4]", "f32[1,1,2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GlobalMaxPoolGrad", 1, global_max_pool_grad_cases)
