// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case is_nan_cases[] = {
    {.name = "f32", .in = {"f32[4]{1,nan,inf,0}"}, .out = {"bool[4]{0,1,0,0}"}},
    {.name = "f64", .in = {"f64[4]{1,nan,inf,0}"}, .out = {"bool[4]{0,1,0,0}"}},
    {.name = "f16", .in = {"f16[4]{1,nan,inf,0}"}, .out = {"bool[4]{0,1,0,0}"}},
    {.name = "bf16", .in = {"bf16[4]{1,nan,inf,0}"}, .out = {"bool[4]{0,1,0,0}"}},
    {.name = "large", .in = {"f32[60,700]"}, .out = {"bool[60,700]"}},
    {.name = "opset 9", .in = {"f32[3]"}, .out = {"bool[3]"}, .opset = 9},
    {.name = "opset 20", .in = {"f32[3]"}, .out = {"bool[3]"}, .opset = 20},
    {0},
};
OT_OP_TEST("IsNaN", 13, is_nan_cases)
