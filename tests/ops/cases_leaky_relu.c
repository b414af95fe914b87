// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case leaky_relu_cases[] = {
    {.name = "known values",
     .in = {"f32[8]{-3.5,-1,-0.25,0,0.25,1,3.5,nan}"},
     .attrs = "alpha = 0.25",
     .out = {"f32[8]{-0.875,-0.25,-0.0625,0,0.25,1,3.5,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[8]{-3.5,-1,-0.25,0,0.25,1,3.5,nan}"},
     .attrs = "alpha = 0.25",
     .out = {"f64[8]{-0.875,-0.25,-0.0625,0,0.25,1,3.5,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .attrs = "alpha = 0.25", .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .attrs = "alpha = 0.25", .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .attrs = "alpha = 0.25", .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001]"},
     .attrs = "alpha = 0.25",
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4]"}, .attrs = "alpha = 0.25", .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported",
     .in = {"i32[3]"},
     .attrs = "alpha = 0.25",
     .error = OT_ERR_UNSUPPORTED},
    {.name = "default slope", .in = {"f32[2]{-1,1}"}, .out = {"f32[2]{-0.01,1}"}},
    {.name = "negative slope", .in = {"f32[9]"}, .attrs = "alpha = -0.5", .out = {"f32[9]"}},
    {.name = "slope zero", .in = {"f32[9]"}, .attrs = "alpha = 0", .out = {"f32[9]"}},
    {0},
};
OT_OP_TEST("LeakyRelu", 13, leaky_relu_cases)
