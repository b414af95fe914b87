// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case identity_cases[] = {
    {.name = "f32", .in = {"f32[2,3]"}, .out = {"f32[2,3]"}},
    {.name = "f64", .in = {"f64[2,3]"}, .out = {"f64[2,3]"}},
    {.name = "f16", .in = {"f16[2,3]"}, .out = {"f16[2,3]"}},
    {.name = "i64", .in = {"i64[2,3]"}, .out = {"i64[2,3]"}},
    {.name = "u8", .in = {"u8[2,3]"}, .out = {"u8[2,3]"}},
    {.name = "bool", .in = {"bool[2,3]"}, .out = {"bool[2,3]"}},
    {.name = "c64", .in = {"c64[2,3]"}, .out = {"c64[2,3]"}},
    {.name = "known values",
     .in = {"f32[3]{1,nan,-0.5}"},
     .out = {"f32[3]{1,nan,-0.5}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[3]"}, .out = {"f32[3]"}, .opset = 7},
    {.name = "empty", .in = {"f32[0]"}, .out = {"f32[0]"}},
    {.name = "no such attribute", .in = {"f32[3]"}, .attrs = "to = 1", .error = OT_ERR_INVALID},
    {.name = "elements of two bits", .in = {"u2[3]{0,3,2}"}, .out = {"u2[3]{0,3,2}"}},
    {0},
};
OT_OP_TEST("Identity", 13, identity_cases)
