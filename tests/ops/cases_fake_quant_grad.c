// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case fake_quant_grad_cases[] = {
    {.name = "dY where the mask is true",
     .in = {"f32[4]{1,-2,3,4}", "bool[4]{0,1,1,0}"},
     .out = {"f32[4]{0,-2,3,0}"}},
    {.name = "f64",
     .in = {"f64[2,2]{1,-2,3,4}", "bool[2,2]{1,1,0,1}"},
     .out = {"f64[2,2]{1,-2,0,4}"}},
    {.name = "large", .in = {"f32[300,70]", "bool[300,70]"}, .out = {"f32[300,70]"}},
    {.name = "a mask of another shape", .in = {"f32[4]", "bool[3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.FakeQuantGrad", 1, fake_quant_grad_cases)
