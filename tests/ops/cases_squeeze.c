// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case squeeze_cases[] = {
    {.name = "one axis",
     .in = {"f32[2,1,3]{1,2,3,4,5,6}", "i64[1]{1} const"},
     .out = {"f32[2,3]{1,2,3,4,5,6}"}},
    {.name = "negative axes",
     .in = {"f32[1,2,1]{1,2}", "i64[2]{-1,0} const"},
     .out = {"f32[2]{1,2}"}},
    {.name = "every axis of extent 1",
     .in = {"f32[1,2,1,3]{1,2,3,4,5,6}"},
     .out = {"f32[2,3]{1,2,3,4,5,6}"},
     .flags = OT_CASE_STATIC},
    {.name = "to a scalar",
     .in = {"f32[1,1]{5}", "i64[2]{0,1} const"},
     .out = {"f32[]{5}"},
     .flags = OT_CASE_STATIC},
    {.name = "opset 11",
     .in = {"f32[2,1,3]{1,2,3,4,5,6}"},
     .attrs = "axes = [1]",
     .out = {"f32[2,3]{1,2,3,4,5,6}"},
     .opset = 11},
    {.name = "i64", .in = {"i64[1,3]{1,2,3}", "i64[1]{0} const"}, .out = {"i64[3]{1,2,3}"}},
    {.name = "extent is not 1", .in = {"f32[2,3]", "i64[1]{1} const"}, .error = OT_ERR_INVALID},
    {.name = "axis out of range", .in = {"f32[2,1]", "i64[1]{2} const"}, .error = OT_ERR_INVALID},
    {.name = "axis twice", .in = {"f32[1,1]", "i64[2]{0,-2} const"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Squeeze", 13, squeeze_cases)
