// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case tile_cases[] = {
    {.name = "two axes",
     .in = {"f32[2,2]{1,2,3,4}", "i64[2]{2,3} const"},
     .out = {"f32[4,6]{1,2,1,2,1,2,3,4,3,4,3,4,1,2,1,2,1,2,3,4,3,4,3,4}"}},
    {.name = "a vector",
     .in = {"f32[3]{1,2,3}", "i64[1]{2} const"},
     .out = {"f32[6]{1,2,3,1,2,3}"}},
    {.name = "once",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[2]{1,1} const"},
     .out = {"f32[2,3]{1,2,3,4,5,6}"}},
    {.name = "three axes",
     .in = {"f32[2,1,2]{1,2,3,4}", "i64[3]{1,3,2} const"},
     .out = {"f32[2,3,4]{1,2,1,2,1,2,1,2,1,2,1,2,3,4,3,4,3,4,3,4,3,4,3,4}"}},
    {.name = "no times", .in = {"f32[2,3]", "i64[2]{2,0} const"}, .out = {"f32[4,0]"}},
    {.name = "a scalar", .in = {"f32[]{4}", "i64[0]{} const"}, .out = {"f32[]{4}"}},
    {.name = "i32", .in = {"i32[2]{1,2}", "i64[1]{2} const"}, .out = {"i32[4]{1,2,1,2}"}},
    {.name = "opset 7",
     .in = {"f32[1,2]{1,2}", "i64[2]{2,2} const"},
     .out = {"f32[2,4]{1,2,1,2,1,2,1,2}"},
     .opset = 7},
    {.name = "repeats for another rank",
     .in = {"f32[2,2]", "i64[1]{2} const"},
     .error = OT_ERR_INVALID},
    {.name = "a negative repeat", .in = {"f32[2]", "i64[1]{-1} const"}, .error = OT_ERR_INVALID},
    {.name = "nine axes",
     .in = {"f32[1,1,1,1,1,1,1,1,2]", "i64[9]{1,1,1,1,1,1,1,1,2} const"},
     .out = {"f32[1,1,1,1,1,1,1,1,4]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Tile", 13, tile_cases)
