// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case constant_cases[] = {
    {.name = "a tensor", .attrs = "value = f32[3]{1.5,2,3}", .out = {"f32[3]{1.5,2,3}"}},
    {.name = "a tensor of integers",
     .attrs = "value = i32[2,2]{1,2,3,4}",
     .out = {"i32[2,2]{1,2,3,4}"}},
    {.name = "an int", .attrs = "value_int = -7", .out = {"i64[]{-7}"}},
    {.name = "ints", .attrs = "value_ints = [1, 2, 3]", .out = {"i64[3]{1,2,3}"}},
    {.name = "a float", .attrs = "value_float = 2.5", .out = {"f32[]{2.5}"}},
    {.name = "floats", .attrs = "value_floats = [1.0, -0.5]", .out = {"f32[2]{1,-0.5}"}},
    {.name = "no value", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Constant", 13, constant_cases)
