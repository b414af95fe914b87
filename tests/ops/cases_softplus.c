// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case softplus_cases[] = {
    {.name = "known values",
     .in = {"f32[12]{-3.5,-1,-0.25,0,0.25,1,3.5,-30,30,-100,100,nan}"},
     .out = {"f32[12]{0.0297504183,0.313261688,0.57593942,0.693147181,0.82593942,1.31326169,3."
             "52975042,9.35762297e-14,30,3.72007598e-44,100,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[12]{-3.5,-1,-0.25,0,0.25,1,3.5,-30,30,-100,100,nan}"},
     .out = {"f64[12]{0.0297504183,0.313261688,0.57593942,0.693147181,0.82593942,1.31326169,3."
             "52975042,9.35762297e-14,30,3.72007598e-44,100,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in -40..40"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Softplus", 13, softplus_cases)
