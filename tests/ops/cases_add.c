// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case add_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{1,-2,3.5,0,inf,nan}", "f32[6]{2,0.5,-1.5,4,1,1}"},
     .out = {"f32[6]{3,-1.5,2,4,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[6]{1,-2,3.5,0,inf,nan}", "f64[6]{2,0.5,-1.5,4,1,1}"},
     .out = {"f64[6]{3,-1.5,2,4,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "i32",
     .in = {"i32[3]{2147483646,-1,5}", "i32[3]{1,1,-7}"},
     .out = {"i32[3]{2147483647,0,-2}"}},
    {.name = "i64",
     .in = {"i64[3]{2147483646,-1,5}", "i64[3]{1,1,-7}"},
     .out = {"i64[3]{2147483647,0,-2}"}},
    {.name = "input missing", .in = {"f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "i32 wraps around",
     .in = {"i32[1]{2147483647}", "i32[1]{1}"},
     .out = {"i32[1]{-2147483648}"}},
    {.name = "unknown attribute",
     .in = {"f32[2]", "f32[2]"},
     .attrs = "axis = 1",
     .error = OT_ERR_INVALID},
    {.name = "edges of vectors", .in = {"f32[N]", "f32[N]"}, .edges = "N vector"},
    {.name = "images, i32", .in = {"i32[2,16,3,3]", "i32[2,16,3,3]"}, .out = {"i32[2,16,3,3]"}},
    {.name = "images, i64", .in = {"i64[2,16,3,3]", "i64[2,16,3,3]"}, .out = {"i64[2,16,3,3]"}},
    {.name = "images, f32", .in = {"f32[2,16,3,3]", "f32[2,16,3,3]"}, .out = {"f32[2,16,3,3]"}},
    {.name = "images, f64", .in = {"f64[2,16,3,3]", "f64[2,16,3,3]"}, .out = {"f64[2,16,3,3]"}},
    {0},
};
OT_OP_TEST("Add", 13, add_cases)
