// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case arg_max_cases[] = {
    {.name = "rows",
     .in = {"f32[2,3]{2,1,5,3,10,10}"},
     .attrs = "axis = 1",
     .out = {"i64[2,1]{2,1}"}},
    {.name = "the last of equal ones",
     .in = {"f32[2,2]{2,2,3,10}"},
     .attrs = "axis = 1, select_last_index = 1",
     .out = {"i64[2,1]{1,1}"}},
    {.name = "default axis", .in = {"f32[2,2]{2,1,3,10}"}, .out = {"i64[1,2]{1,1}"}},
    {.name = "not kept",
     .in = {"f32[2,3,2]{1,2,3,4,5,6,7,8,9,10,11,12}"},
     .attrs = "axis = -2, keepdims = 0",
     .out = {"i64[2,2]{2,2,2,2}"}},
    {.name = "a NaN", .in = {"f32[3]{1,nan,2}"}, .attrs = "axis = 0", .out = {"i64[1]{1}"}},
    {.name = "i64", .in = {"i64[3]{3,9,4}"}, .out = {"i64[1]{1}"}},
    {.name = "u8", .in = {"u8[3]{3,250,4}"}, .out = {"i64[1]{1}"}},
    {.name = "f16", .in = {"f16[3]{3,-1,4}"}, .out = {"i64[1]{2}"}},
    {.name = "bf16", .in = {"bf16[2]{1,3}"}, .out = {"i64[1]{1}"}},
    {.name = "no outputs", .in = {"f32[0,3]"}, .attrs = "axis = 1", .out = {"i64[0,1]"}},
    {.name = "opset 11", .in = {"f32[2,2]{2,1,3,10}"}, .out = {"i64[1,2]{1,1}"}, .opset = 11},
    {.name = "an empty axis", .in = {"f32[0,3]"}, .attrs = "axis = 0", .error = OT_ERR_INVALID},
    {.name = "axis out of range", .in = {"f32[3]"}, .attrs = "axis = 1", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ArgMax", 13, arg_max_cases)
