// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case ceil_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-1.5,-1,-0.25,0,0.25,nan}"},
     .out = {"f32[6]{-1,-1,-0,0,1,nan}"}},
    {.name = "f64", .in = {"f64[3]{-1.5,1.2,2}"}, .out = {"f64[3]{-1,2,2}"}},
    {.name = "large", .in = {"f32[3,17001] in -10..10"}, .out = {"f32[3,17001]"}},
    {.name = "opset 1", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 1},
    {0},
};
OT_OP_TEST("Ceil", 13, ceil_cases)
