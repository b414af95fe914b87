// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case mul_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{1,-2,3.5,0,inf,nan}", "f32[6]{2,0.5,-1.5,4,1,1}"},
     .out = {"f32[6]{2,-1,-5.25,0,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[6]{1,-2,3.5,0,inf,nan}", "f64[6]{2,0.5,-1.5,4,1,1}"},
     .out = {"f64[6]{2,-1,-5.25,0,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "i32", .in = {"i32[3]{3,-1,5}", "i32[3]{2,1,-7}"}, .out = {"i32[3]{6,-1,-35}"}},
    {.name = "i64", .in = {"i64[3]{3,-1,5}", "i64[3]{2,1,-7}"}, .out = {"i64[3]{6,-1,-35}"}},
    {.name = "input missing", .in = {"f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Mul", 13, mul_cases)
