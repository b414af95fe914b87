// SPDX-License-Identifier: Apache-2.0
// Values: ONNX Runtime's for the first, the formula for the others. The gradient is not that of Y:
// it passes straight through, as op_fake_quant_grad's cases have it.
#include "harness.h"

static const ot_op_case fake_quant_cases[] = {
    {.name = "as ONNX Runtime has it",
     .in = {"f32[4]{-1,0.26,0.5,300}", "f32[]{0.5}", "f32[]{0}"},
     .out = {"f32[4]{0,0.5,0.5,127.5}", "bool[4]{0,1,1,0}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "halves go to the even neighbour",
     .in = {"f32[2,3]{0.5,1.5,2.5,-0.5,-1.5,-2.5}", "f32[1]{1}", "f32[1]{0}"},
     .attrs = "quant_min = -128, quant_max = 127",
     .out = {"f32[2,3]{0,2,2,0,-2,-2}", "bool[2,3]{1,1,1,1,1,1}"},
     .flags = OT_CASE_NO_GRAD | OT_CASE_RULE},
    {.name = "a zero point",
     .in = {"f32[4]{-64.5,-64,63,63.75}", "f32[]{0.5}", "f32[]{128}"},
     .out = {"f32[4]{-64,-64,63,63.5}", "bool[4]{0,1,1,0}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "without the mask",
     .in = {"f64[3]{-1,0.26,300}", "f64[]{0.5}", "f64[]{0}"},
     .out = {"f64[3]{0,0.5,127.5}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "several threads",
     .in = {"f32[300,70]", "f32[]{0.25}", "f32[]{3}"},
     .attrs = "quant_max = 7",
     .out = {"f32[300,70]", "bool[300,70]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "empty",
     .in = {"f32[0,3]", "f32[]{0.5}", "f32[]{0}"},
     .out = {"f32[0,3]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "a scale of 0", .in = {"f32[3]", "f32[]{0}", "f32[]{0}"}, .error = OT_ERR_INVALID},
    {.name = "several scales", .in = {"f32[3]", "f32[3]", "f32[]"}, .error = OT_ERR_INVALID},
    {.name = "an empty range",
     .in = {"f32[3]", "f32[]", "f32[]"},
     .attrs = "quant_min = 5, quant_max = 5",
     .error = OT_ERR_INVALID},
    {.name = "integers", .in = {"i32[3]", "i32[]", "i32[]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("com.microsoft.FakeQuant", 1, fake_quant_cases)
