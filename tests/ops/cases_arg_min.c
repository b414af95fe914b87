// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case arg_min_cases[] = {
    {.name = "rows",
     .in = {"f32[2,3]{2,1,5,3,10,10}"},
     .attrs = "axis = 1",
     .out = {"i64[2,1]{1,0}"}},
    {.name = "the last of equal ones",
     .in = {"f32[2,2]{2,2,3,10}"},
     .attrs = "axis = 1, select_last_index = 1",
     .out = {"i64[2,1]{1,0}"}},
    {.name = "not kept",
     .in = {"f32[2,3]{2,1,5,3,0,10}"},
     .attrs = "axis = -2, keepdims = 0",
     .out = {"i64[3]{0,1,0}"}},
    {.name = "i64", .in = {"i64[3]{3,-9,4}"}, .out = {"i64[1]{1}"}},
    {.name = "opset 1", .in = {"f32[2,2]{2,10,3,1}"}, .out = {"i64[1,2]{0,1}"}, .opset = 1},
    {.name = "an empty axis", .in = {"f32[0,3]"}, .attrs = "axis = 0", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ArgMin", 13, arg_min_cases)
