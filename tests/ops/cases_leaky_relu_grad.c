// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case leaky_relu_grad_cases[] = {
    {.name = "ONNX Runtime's values",
     .in = {"f32[3]{1,2,3}", "f32[3]{-1,0,2}"},
     .attrs = "alpha = 0.01",
     .out = {"f32[3]{0.01,0.02,3}"}},
    {.name = "matrix",
     .in = {"f32[5,7]", "f32[5,7]"},
     .attrs = "alpha = 0.01",
     .out = {"f32[5,7]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[70,601]"},
     .attrs = "alpha = 0.01",
     .out = {"f32[70,601]"}},
    {.name = "types differ",
     .in = {"f32[2]", "f64[2]"},
     .attrs = "alpha = 0.01",
     .error = OT_ERR_INVALID},
    {.name = "shapes that differ", .in = {"f32[3]", "f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.LeakyReluGrad", 1, leaky_relu_grad_cases)
