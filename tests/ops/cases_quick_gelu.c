// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case quick_gelu_cases[] = {
    {.name = "known values",
     .in = {"f32[5]{-1,0,2,-20,20}"},
     .out = {"f32[5]{-0.154204234,0,1.93565862,-3.29341024e-14,20}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[5]{-1,0,2,-20,20}"},
     .out = {"f64[5]{-0.154204234,0,1.93565862,-3.29341024e-14,20}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large", .in = {"f32[3,17001]"}, .out = {"f32[3,17001]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {.name = "ONNX Runtime's values",
     .in = {"f32[3]{-1,0,2}"},
     .out = {"f32[3]{-0.154204,0,1.93566}"}},
    {.name = "alpha 1", .in = {"f32[7]"}, .attrs = "alpha = 1.0", .out = {"f32[7]"}},
    {0},
};
OT_OP_TEST("com.microsoft.QuickGelu", 1, quick_gelu_cases)
