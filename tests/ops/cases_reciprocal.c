// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case reciprocal_cases[] = {
    {.name = "known values",
     .in = {"f32[7]{1,-2,0.5,4,0,inf,nan}"},
     .out = {"f32[7]{1,-0.5,2,0.25,inf,0,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[7]{1,-2,0.5,4,0,inf,nan}"},
     .out = {"f64[7]{1,-0.5,2,0.25,inf,0,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7] in 0.5..3"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[] in 0.5..3"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in 0.5..3"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4] in 0.5..3"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Reciprocal", 13, reciprocal_cases)
