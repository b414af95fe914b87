// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case shape_cases[] = {
    {.name = "all axes", .in = {"f32[2,3,1]{1,2,3,4,5,6}"}, .out = {"i64[3]{2,3,1}"}},
    {.name = "a range",
     .in = {"f32[2,3,4]{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24}"},
     .attrs = "start = 1, end = 2",
     .out = {"i64[1]{3}"}},
    {.name = "from the end",
     .in = {"f32[2,3,4]{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24}"},
     .attrs = "start = -2",
     .out = {"i64[2]{3,4}"}},
    {.name = "beyond the ends",
     .in = {"f32[2,3]{1,2,3,4,5,6}"},
     .attrs = "start = -9, end = 9",
     .out = {"i64[2]{2,3}"}},
    {.name = "an empty range",
     .in = {"f32[2,3]{1,2,3,4,5,6}"},
     .attrs = "start = 2, end = 1",
     .out = {"i64[0]"}},
    {.name = "a scalar", .in = {"f32[]"}, .out = {"i64[0]"}},
    {.name = "bool", .in = {"bool[1]{1}"}, .out = {"i64[1]{1}"}},
    {.name = "opset 7", .in = {"f32[2,3]{1,2,3,4,5,6}"}, .out = {"i64[2]{2,3}"}, .opset = 7},
    {.name = "start before opset 15",
     .in = {"f32[2]"},
     .attrs = "start = 0",
     .opset = 13,
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Shape", 15, shape_cases)
