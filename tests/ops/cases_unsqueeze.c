// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case unsqueeze_cases[] = {
    {.name = "in front", .in = {"f32[3]{1,2,3}", "i64[1]{0} const"}, .out = {"f32[1,3]{1,2,3}"}},
    {.name = "several",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[2]{0,3} const"},
     .out = {"f32[1,2,3,1]{1,2,3,4,5,6}"}},
    {.name = "negative",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[2]{-1,1} const"},
     .out = {"f32[2,1,3,1]{1,2,3,4,5,6}"}},
    {.name = "a scalar", .in = {"f32[]{3}", "i64[1]{0} const"}, .out = {"f32[1]{3}"}},
    {.name = "opset 7",
     .in = {"f32[2,2]{1,2,3,4}"},
     .attrs = "axes = [0, 2]",
     .out = {"f32[1,2,1,2]{1,2,3,4}"},
     .opset = 7},
    {.name = "bool", .in = {"bool[2]{1,0}", "i64[1]{1} const"}, .out = {"bool[2,1]{1,0}"}},
    {.name = "axis out of range", .in = {"f32[2]", "i64[1]{3} const"}, .error = OT_ERR_INVALID},
    {.name = "axis twice", .in = {"f32[2]", "i64[2]{0,-3} const"}, .error = OT_ERR_INVALID},
    {.name = "too many axes",
     .in = {"f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "i64[1]{0} const"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Unsqueeze", 13, unsqueeze_cases)
