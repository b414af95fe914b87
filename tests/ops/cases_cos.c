// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case cos_cases[] = {
    {.name = "known values",
     .in = {"f32[9]{-3.5,-1,-0.25,0,0.25,1,3.5,100,10000}"},
     .out = {"f32[9]{-0.936456687,0.540302306,0.968912422,1,0.968912422,0.540302306,-0.936456687,0."
             "862318872,-0.952155368}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[9]{-3.5,-1,-0.25,0,0.25,1,3.5,100,10000}"},
     .out = {"f64[9]{-0.936456687,0.540302306,0.968912422,1,0.968912422,0.540302306,-0.936456687,0."
             "862318872,-0.952155368}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large", .in = {"f32[3,17001]"}, .out = {"f32[3,17001]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Cos", 13, cos_cases)
