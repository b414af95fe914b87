// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case fast_gelu_cases[] = {
    {.name = "ONNX Runtime's values",
     .in = {"f32[3]{-1,0,2}"},
     .out = {"f32[3]{-0.158808,0,1.9546}"}},
    {.name = "with bias",
     .in = {"f32[1,3]{-1.1,-0.2,1.7}", "f32[3]{0.1,0.2,0.3}"},
     .out = {"f32[1,3]{-0.158808,0,1.9546}"}},
    {.name = "matrix", .in = {"f32[4,5]"}, .out = {"f32[4,5]"}},
    {.name = "batch", .in = {"f32[2,4,5]", "f32[5]"}, .out = {"f32[2,4,5]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[601]"},
     .out = {"f32[70,601]"},
     .terms = 0.1, // 1 + tanh
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("com.microsoft.FastGelu", 1, fast_gelu_cases)
