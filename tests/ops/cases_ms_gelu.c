// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case ms_gelu_cases[] = {
    {.name = "known values",
     .in = {"f32[3]{-1,0,2}"},
     .out = {"f32[3]{-0.158655254,0,1.95449974}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[3]{-1,0,2}"},
     .out = {"f64[3]{-0.158655254,0,1.95449974}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large", .in = {"f32[3,17001]"}, .out = {"f32[3,17001]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("com.microsoft.Gelu", 1, ms_gelu_cases)
