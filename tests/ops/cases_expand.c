// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case expand_cases[] = {
    {.name = "rows",
     .in = {"f32[3,1]{1,2,3}", "i64[2]{3,4} const"},
     .out = {"f32[3,4]{1,1,1,1,2,2,2,2,3,3,3,3}"}},
    {.name = "new axes",
     .in = {"f32[2]{1,2}", "i64[3]{3,1,2} const"},
     .out = {"f32[3,1,2]{1,2,1,2,1,2}"}},
    {.name = "smaller than the input",
     .in = {"f32[3,2]{1,2,3,4,5,6}", "i64[1]{1} const"},
     .out = {"f32[3,2]{1,2,3,4,5,6}"}},
    {.name = "both ways",
     .in = {"f32[2,1,3]{1,2,3,4,5,6}", "i64[2]{4,1} const"},
     .out = {"f32[2,4,3]{1,2,3,1,2,3,1,2,3,1,2,3,4,5,6,4,5,6,4,5,6,4,5,6}"}},
    {.name = "a scalar", .in = {"f32[]{4}", "i64[2]{2,2} const"}, .out = {"f32[2,2]{4,4,4,4}"}},
    {.name = "nothing",
     .in = {"f32[2,2]{1,2,3,4}", "i64[2]{2,2} const"},
     .out = {"f32[2,2]{1,2,3,4}"}},
    {.name = "to no elements", .in = {"f32[1,3]", "i64[2]{0,3} const"}, .out = {"f32[0,3]"}},
    {.name = "bool", .in = {"bool[2]{1,0}", "i64[2]{2,2} const"}, .out = {"bool[2,2]{1,0,1,0}"}},
    {.name = "i64", .in = {"i64[1]{1}", "i64[1]{3} const"}, .out = {"i64[3]{1,1,1}"}},
    {.name = "opset 8",
     .in = {"f32[1,2]{1,2}", "i64[2]{2,1} const"},
     .out = {"f32[2,2]{1,2,1,2}"},
     .opset = 8},
    {.name = "does not fit", .in = {"f32[2]", "i64[1]{3} const"}, .error = OT_ERR_INVALID},
    {.name = "a negative extent", .in = {"f32[1]", "i64[1]{-1} const"}, .error = OT_ERR_INVALID},
    {.name = "shape is a scalar", .in = {"f32[1]", "i64[]{3} const"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Expand", 13, expand_cases)
