// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case prelu_cases[] = {
    {.name = "PyTorch's values",
     .in = {"f32[4]{-4,-0.5,0,2}", "f32[1]{0.25}"},
     .out = {"f32[4]{-1,-0.125,0,2}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "images", .in = {"f32[2,16,3,3]", "f32[16,1,1]"}, .out = {"f32[2,16,3,3]"}},
    {.name = "f64, opset 9", .in = {"f64[5,7]", "f64[7]"}, .out = {"f64[5,7]"}, .opset = 9},
    {.name = "i32", .in = {"i32[3]{-4,0,2}", "i32[3]{2,3,4}"}, .out = {"i32[3]{-8,0,2}"}},
    {.name = "opset 7", .in = {"f32[2,3]", "f32[3]"}, .out = {"f32[2,3]"}, .opset = 7},
    {.name = "opset 1",
     .in = {"f32[2,3]", "f32[1] const"},
     .attrs = "consumed_inputs = [0]",
     .out = {"f32[2,3]"},
     .opset = 1},
    {.name = "opset 6, a slope a channel",
     .in = {"f32[2,3,4]", "f32[3] const"},
     .opset = 6,
     .error = OT_ERR_INVALID},
    {.name = "a slope that is larger", .in = {"f32[1,3]", "f32[2,3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("PRelu", 16, prelu_cases)
