// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case sqrt_cases[] = {
    {.name = "known values",
     .in = {"f32[9]{0,0.25,1,2,100,1e-10,-1,inf,nan}"},
     .out = {"f32[9]{0,0.5,1,1.41421356,10,1e-05,nan,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[9]{0,0.25,1,2,100,1e-10,-1,inf,nan}"},
     .out = {"f64[9]{0,0.5,1,1.41421356,10,1e-05,nan,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7] in 0.3..4"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[] in 0.3..4"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in 0..100"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4] in 0.3..4"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Sqrt", 13, sqrt_cases)
