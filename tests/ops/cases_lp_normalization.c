// SPDX-License-Identifier: Apache-2.0
// Values: the formula, with 0 for vectors of zeros, as ONNX defines it.
#include "harness.h"

static const ot_op_case lp_normalization_cases[] = {
    {.name = "rows by the root of squares",
     .in = {"f32[3,3]{3,-4,0,0,0,0,1,2,2}"},
     .out = {"f32[3,3]{0.6,-0.8,0,0,0,0,0.3333333,0.6666667,0.6666667}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "columns by the sum of sizes",
     .in = {"f32[3,3]{3,-4,0,0,0,0,1,2,2}"},
     .attrs = "p = 1, axis = 0",
     .out = {"f32[3,3]{0.75,-0.6666667,0,0,0,0,0.25,0.3333333,1}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "any sizes", .in = {"f32[2,3,4]"}, .flags = OT_CASE_OPEN},
    {.name = "any sizes, p = 1",
     .in = {"f32[2,3,4]"},
     .attrs = "p = 1, axis = -2",
     .flags = OT_CASE_OPEN},
    {.name = "opset 22, p = 2",
     .in = {"f32[2,3,4]"},
     .attrs = "p = 2, axis = 1",
     .opset = 22,
     .flags = OT_CASE_OPEN},
    {.name = "opset 9", .in = {"f64[5]"}, .out = {"f64[5]"}, .opset = 9},
    {.name = "axis of size 1",
     .in = {"f32[3,1]{2,-3,0}"},
     .out = {"f32[3,1]{1,-1,0}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "empty", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}},
    {.name = "large", .in = {"f32[70,601]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "p = 3", .in = {"f32[2,3]"}, .attrs = "p = 3", .error = OT_ERR_INVALID},
    {.name = "p = 0", .in = {"f32[2,3]"}, .attrs = "p = 0", .error = OT_ERR_INVALID},
    {.name = "axis beyond X", .in = {"f32[2,3]"}, .attrs = "axis = 2", .error = OT_ERR_INVALID},
    {.name = "a scalar", .in = {"f32[]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("LpNormalization", 13, lp_normalization_cases)
