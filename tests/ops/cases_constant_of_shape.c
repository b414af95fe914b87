// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case constant_of_shape_cases[] = {
    {.name = "zeros by default", .in = {"i64[2]{2,2} const"}, .out = {"f32[2,2]{0,0,0,0}"}},
    {.name = "a value",
     .in = {"i64[1]{3} const"},
     .attrs = "value = f32[1]{2.5}",
     .out = {"f32[3]{2.5,2.5,2.5}"}},
    {.name = "integers",
     .in = {"i64[2]{2,1} const"},
     .attrs = "value = i64[1]{-3}",
     .out = {"i64[2,1]{-3,-3}"}},
    {.name = "bool",
     .in = {"i64[1]{2} const"},
     .attrs = "value = bool[1]{1}",
     .out = {"bool[2]{1,1}"}},
    {.name = "a scalar", .in = {"i64[0]{} const"}, .out = {"f32[]{0}"}},
    {.name = "no elements", .in = {"i64[2]{0,2} const"}, .out = {"f32[0,2]"}},
    {.name = "opset 9", .in = {"i64[1]{2} const"}, .out = {"f32[2]{0,0}"}, .opset = 9},
    {.name = "two values",
     .in = {"i64[1]{2} const"},
     .attrs = "value = f32[2]{1,2}",
     .error = OT_ERR_INVALID},
    {.name = "a negative extent", .in = {"i64[1]{-1} const"}, .error = OT_ERR_INVALID},
    {.name = "too many axes",
     .in = {"i64[17]{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1} const"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ConstantOfShape", 20, constant_of_shape_cases)
