// SPDX-License-Identifier: Apache-2.0
// The contract of opset 10's Resize, under another name.
#include "harness.h"

static const ot_op_case upsample_cases[] = {
    {.name = "nearest",
     .in = {"f32[1,1,2,2]{1,4,1,-4}", "f32[4]{1,1,2,1.5} const"},
     .out = {"f32[1,1,4,3]{1,1,4,1,1,4,1,1,-4,1,1,-4}"},
     .opset = 9},
    {.name = "linear",
     .in = {"f32[1,1,1,3]{0,2,8}", "f32[4]{1,1,1,2} const"},
     .attrs = "mode = \"linear\"",
     .out = {"f32[1,1,1,6]{0,1,2,5,8,8}"},
     .opset = 9},
    {.name = "scales as an attribute",
     .in = {"f32[1,1,1,3]{0,2,8}"},
     .attrs = "mode = \"linear\", scales = [1.0, 1.0, 1.0, 2.0]",
     .out = {"f32[1,1,1,6]{0,1,2,5,8,8}"},
     .opset = 7},
    {.name = "any batch",
     .in = {"f32[2,3,2,2]"},
     .attrs = "scales = [1.0, 1.0, 3.0, 2.0]",
     .out = {"f32[2,3,6,4]"},
     .opset = 7},
    {.name = "scales of another number",
     .in = {"f32[2,3,2,2]"},
     .attrs = "scales = [1.0, 3.0]",
     .opset = 7,
     .error = OT_ERR_INVALID},
    {.name = "scales are missing", .in = {"f32[2,3,2,2]"}, .opset = 7, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Upsample", 9, upsample_cases)
