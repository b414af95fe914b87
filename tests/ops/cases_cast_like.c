// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case cast_like_cases[] = {
    {.name = "f32 to i64", .in = {"f32[3]{1.9,-1.9,3}", "i64[1]"}, .out = {"i64[3]{1,-1,3}"}},
    {.name = "i32 to f32", .in = {"i32[3]{1,-1,3}", "f32[2,2]"}, .out = {"f32[3]{1,-1,3}"}},
    {.name = "f32 to f32",
     .in = {"f32[3,35]", "f32[1]"},
     .out = {"f32[3,35]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64 to f64, with gradient", .in = {"f64[3,4]", "f64[]"}, .out = {"f64[3,4]"}},
    {.name = "f32 to bool", .in = {"f32[3]{0,1,2}", "bool[1]"}, .out = {"bool[3]{0,1,1}"}},
    {.name = "target missing", .in = {"f32[3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("CastLike", 15, cast_like_cases)
