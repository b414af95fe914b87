// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case size_cases[] = {
    {.name = "a matrix", .in = {"f32[2,3]{1,2,3,4,5,6}"}, .out = {"i64[]{6}"}},
    {.name = "a scalar", .in = {"f32[]{1}"}, .out = {"i64[]{1}"}},
    {.name = "empty", .in = {"f32[0,3]"}, .out = {"i64[]{0}"}},
    {.name = "opset 7", .in = {"f32[2,2]{1,2,3,4}"}, .out = {"i64[]{4}"}, .opset = 7},
    {0},
};
OT_OP_TEST("Size", 13, size_cases)
