// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case round_cases[] = {
    {.name = "halves go to the even neighbour",
     .in = {"f32[9]{-3.5,-2.5,-0.5,0.4,0.5,1.5,2.5,inf,nan}"},
     .out = {"f32[9]{-4,-2,0,0,0,2,2,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[6]{-3.5,-0.75,0.49,0.5,1.5,1000000000.5}"},
     .out = {"f64[6]{-4,-1,0,0,2,1000000000}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large", .in = {"f32[3,17001]"}, .out = {"f32[3,17001]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "opset 11", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 11},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Round", 13, round_cases)
