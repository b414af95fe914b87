// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case bias_gelu_cases[] = {
    {.name = "known values",
     .in = {"f32[1,3]{-1.1,-0.2,1.7}", "f32[3]{0.1,0.2,0.3}"},
     .out = {"f32[1,3]{-0.158655,0,1.9545}"}},
    {.name = "batch", .in = {"f32[2,4,5]", "f32[5]"}, .out = {"f32[2,4,5]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[601]"},
     .out = {"f32[70,601]"},
     .terms = 0.1, // 1 + erf
     .flags = OT_CASE_NO_GRAD},
    {.name = "bias does not fit", .in = {"f32[2,3]", "f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "a bias that is larger", .in = {"f32[1,3]", "f32[2,3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.BiasGelu", 1, bias_gelu_cases)
