// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case ms_fused_gemm_cases[] = {
    RECORDED_FUSED_GEMM,
    {.name = "ONNX's parameters", // of LeakyRelu: 0.01
     .in = {"f32[1,1]{-4}", "f32[1,2]{1,-1}"},
     .attrs = "activation = \"LeakyRelu\"",
     .out = {"f32[1,2]{-0.04,4}"}},
    {.name = "large",
     .in = {"f32[40,70] in -0.1..0.1", "f32[70,300]", "f32[300]"},
     .attrs = "activation = \"Relu\"",
     .terms = 8,
     .flags = OT_CASE_NO_GRAD},
    {.name = "no rows",
     .in = {"f32[0,3]", "f32[3,4]"},
     .attrs = "activation = \"Relu\"",
     .out = {"f32[0,4]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "no activation", .in = {"f32[2,3]", "f32[3,4]"}, .error = OT_ERR_INVALID},
    {.name = "an activation that is not known",
     .in = {"f32[2,3]", "f32[3,4]"},
     .attrs = "activation = \"Gelu\"",
     .error = OT_ERR_INVALID},
    {.name = "a parameter that it does not have",
     .in = {"f32[2,3]", "f32[3,4]"},
     .attrs = "activation = \"Elu\", activation_beta = 1.0",
     .error = OT_ERR_INVALID},
    {.name = "inner dimensions differ",
     .in = {"f32[2,3]", "f32[4,4]"},
     .attrs = "activation = \"Relu\"",
     .error = OT_ERR_INVALID},
    {.name = "C is larger",
     .in = {"f32[2,3]", "f32[3,4]", "f32[3,2,4]"},
     .attrs = "activation = \"Relu\"",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.FusedGemm", 1, ms_fused_gemm_cases)
