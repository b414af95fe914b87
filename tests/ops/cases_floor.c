// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case floor_cases[] = {
    {.name = "known values",
     .in = {"f32[10]{-3.5,-1,-0.25,0,0.25,1,3.5,1000000000,-inf,nan}"},
     .out = {"f32[10]{-4,-1,-1,0,0,1,3,1000000000,-inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[10]{-3.5,-1,-0.25,0,0.25,1,3.5,1000000000,-inf,nan}"},
     .out = {"f64[10]{-4,-1,-1,0,0,1,3,1000000000,-inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large", .in = {"f32[3,17001]"}, .out = {"f32[3,17001]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Floor", 13, floor_cases)
