// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case less_or_equal_cases[] = {
    {.name = "known values",
     .in = {"f32[5]{1,2,3,nan,inf}", "f32[5]{1,3,2,nan,inf}"},
     .out = {"bool[5]{1,1,0,0,1}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[5]{1,2,3,nan,inf}", "f64[5]{1,3,2,nan,inf}"},
     .out = {"bool[5]{1,1,0,0,1}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 12", .in = {"f32[2,3]", "f32[3]"}, .out = {"bool[2,3]"}, .opset = 12},
    {.name = "input missing", .in = {"f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "i8", .in = {"i8[3]{1,2,3}", "i8[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "i16", .in = {"i16[3]{1,2,3}", "i16[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "i32", .in = {"i32[3]{1,2,3}", "i32[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "i64", .in = {"i64[3]{1,2,3}", "i64[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "u8", .in = {"u8[3]{1,2,3}", "u8[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "u16", .in = {"u16[3]{1,2,3}", "u16[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "u32", .in = {"u32[3]{1,2,3}", "u32[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "u64", .in = {"u64[3]{1,2,3}", "u64[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "f16", .in = {"f16[3]{1,2,3}", "f16[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "bf16", .in = {"bf16[3]{1,2,3}", "bf16[3]{1,3,2}"}, .out = {"bool[3]{1,1,0}"}},
    {.name = "negative numbers",
     .in = {"i32[3]{-1,-2,3}", "i32[1]{-1}"},
     .out = {"bool[3]{1,1,0}"}},
    {0},
};
OT_OP_TEST("LessOrEqual", 16, less_or_equal_cases)
