// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case bias_fast_gelu_grad_cases[] = {
    {.name = "ONNX Runtime's values",
     .in = {"f32[3]{1,1,1}", "f32[3]{-1,0,2}", "f32[3]{.1,.2,.3}"},
     .out = {"f32[3]{-0.0550672,0.657458,1.05509}"}},
    {.name = "matrix", .in = {"f32[5,7]", "f32[5,7]", "f32[7]"}, .out = {"f32[5,7]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[70,601]", "f32[601]"},
     .out = {"f32[70,601]"},
     .terms = 1}, // 1 + tanh, times dY and x
    {.name = "types differ", .in = {"f32[2]", "f64[2]", "f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "shapes that differ", .in = {"f32[2,3]", "f32[3]", "f32[3]"}, .error = OT_ERR_INVALID},
    {.name = "a bias that is larger",
     .in = {"f32[1,3]", "f32[1,3]", "f32[2,3]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.BiasFastGeluGrad_dX", 1, bias_fast_gelu_grad_cases)
