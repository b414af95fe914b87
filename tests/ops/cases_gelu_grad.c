// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case gelu_grad_cases[] = {
    {.name = "ONNX Runtime's values",
     .in = {"f32[3]{1,1,1}", "f32[3]{-1,0,2}"},
     .out = {"f32[3]{-0.0833154,0.5,1.08523}"}},
    {.name = "matrix", .in = {"f32[5,7]", "f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "large", .in = {"f32[70,601]", "f32[70,601]"}, .out = {"f32[70,601]"}},
    {.name = "types differ", .in = {"f32[2]", "f64[2]"}, .error = OT_ERR_INVALID},
    {.name = "shapes that differ", .in = {"f32[3]", "f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "edges of vectors", .in = {"f32[N]", "f32[N]"}, .edges = "N vector"},
    {0},
};
OT_OP_TEST("com.microsoft.GeluGrad", 1, gelu_grad_cases)
