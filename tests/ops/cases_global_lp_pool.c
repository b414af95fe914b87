// SPDX-License-Identifier: Apache-2.0
// Values: the norms in f64.
#include "harness.h"

#define X "f32[2,3,2,2]{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4,2,3,2,-3}"

static const ot_op_case global_lp_pool_cases[] = {
    {.name = "p = 2",
     .in = {X},
     .out = {"f32[2,3,1,1]{5.830952,6.164414,3,3.605551,6.557439,5.09902}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "p = 1",
     .in = {X},
     .attrs = "p = 1",
     .out = {"f32[2,3,1,1]{10,12,5,5,13,10}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "p = 3",
     .in = {X},
     .attrs = "p = 3",
     .out = {"f32[2,3,1,1]{5.065797,5.013298,2.571282,3.271066,5.253588,4.121285}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "zeros alone",
     .in = {"f32[1,2,2]{0,0,3,-4}"},
     .attrs = "p = 4",
     .out = {"f32[1,2,1]{0,4.284572}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "any sizes", .in = {"f32[2,3,2,3]"}, .flags = OT_CASE_OPEN},
    {.name = "any sizes, p = 1, opset 18",
     .in = {"f32[2,3,5]"},
     .attrs = "p = 1",
     .opset = 18,
     .flags = OT_CASE_OPEN},
    {.name = "any sizes, p = 3, opset 22",
     .in = {"f32[2,3,2,1,2]"},
     .attrs = "p = 3",
     .opset = 22,
     .flags = OT_CASE_OPEN},
    {.name = "opset 7", .in = {"f64[1,2,3]"}, .out = {"f64[1,2,1]"}, .opset = 7},
    {.name = "no images", .in = {"f32[0,2,3]"}, .out = {"f32[0,2,1]"}},
    {.name = "p = 0", .in = {"f32[1,2,3]"}, .attrs = "p = 0", .error = OT_ERR_INVALID},
    {.name = "no spatial axes", .in = {"f32[2,3]"}, .error = OT_ERR_INVALID},
    {.name = "no elements", .in = {"f32[2,3,0]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("GlobalLpPool", 13, global_lp_pool_cases)
