// SPDX-License-Identifier: Apache-2.0
// Values: the formula in f64.
#include "harness.h"

static const ot_op_case swiglu_cases[] = {
    {.name = "values",
     .in = {"f32[5]{-4,-1,0,0.5,3}", "f32[5]{1,-2,3,0.5,-1}"},
     .out = {"f32[5]{-0.0719448398,0.537882843,0,0.155614833,-2.85772238}"}},
    {.name = "alpha",
     .in = {"f32[5]{-4,-1,0,0.5,3}", "f32[5]{1,-2,3,0.5,-1}"},
     .attrs = "alpha = 1.702",
     .out = {"f32[5]{-0.00441472414,0.308408468,0,0.175194218,-2.98192869}"}},
    {.name = "rows",
     .in = {"f32[3,1,7]", "f32[3,1,7]"},
     .out = {"f32[3,1,7]"},
     .flags = OT_CASE_OPEN},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "scalars, f64", .in = {"f64[]", "f64[]"}, .out = {"f64[]"}},
    {.name = "empty", .in = {"f32[0,3]", "f32[0,3]"}, .out = {"f32[0,3]"}},
    {.name = "no broadcasting", .in = {"f32[2,3]", "f32[3]"}, .error = OT_ERR_INVALID},
    {.name = "integers", .in = {"i32[3]", "i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("SwiGLU", 28, swiglu_cases)
