// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case erf_cases[] = {
    {.name = "known values",
     .in = {"f32[11]{-3.5,-1,-0.25,0,0.25,1,3.5,-6,6,0.0001,nan}"},
     .out = {"f32[11]{-0.999999257,-0.842700793,-0.27632639,0,0.27632639,0.842700793,0.999999257,-"
             "1,1,0.000112837916,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[11]{-3.5,-1,-0.25,0,0.25,1,3.5,-6,6,0.0001,nan}"},
     .out = {"f64[11]{-0.999999257,-0.842700793,-0.27632639,0,0.27632639,0.842700793,0.999999257,-"
             "1,1,0.000112837916,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in -5..5"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 9", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 9},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Erf", 13, erf_cases)
