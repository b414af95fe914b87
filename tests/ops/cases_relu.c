// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case relu_cases[] = {
    {.name = "known values",
     .in = {"f32[10]{-3.5,-1,-0.25,0,0.25,1,3.5,-inf,inf,nan}"},
     .out = {"f32[10]{0,0,0,0,0.25,1,3.5,0,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[10]{-3.5,-1,-0.25,0,0.25,1,3.5,-inf,inf,nan}"},
     .out = {"f64[10]{0,0,0,0,0.25,1,3.5,0,inf,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large", .in = {"f32[3,17001]"}, .out = {"f32[3,17001]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "i32", .in = {"i32[3]{-3,0,4}"}, .out = {"i32[3]{0,0,4}"}},
    {.name = "i64", .in = {"i64[3]{-3,0,4}"}, .out = {"i64[3]{0,0,4}"}},
    {.name = "edges of vectors", .in = {"f32[N]"}, .edges = "N vector"},
    {0},
};
OT_OP_TEST("Relu", 14, relu_cases)
