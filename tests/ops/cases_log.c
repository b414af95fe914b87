// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case log_cases[] = {
    {.name = "known values",
     .in = {"f32[10]{1,2,0.5,10,1e-06,1000000,0,-1,inf,nan}"},
     .out =
         {"f32[10]{0,0.693147181,-0.693147181,2.30258509,-13.8155106,13.8155106,-inf,nan,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[10]{1,2,0.5,10,1e-06,1000000,0,-1,inf,nan}"},
     .out =
         {"f64[10]{0,0.693147181,-0.693147181,2.30258509,-13.8155106,13.8155106,-inf,nan,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7] in 0.5..3"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[] in 0.5..3"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in 0..1000"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4] in 0.5..3"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Log", 13, log_cases)
