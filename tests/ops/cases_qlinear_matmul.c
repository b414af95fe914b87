// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

#define SCALE "f32[]{0.5}"
#define ZERO "u8[]{3}"

static const ot_op_case qlinear_matmul_cases[] = {
    RECORDED_Q_LINEAR_MAT_MUL,
    {.name = "halves go to even, and to the ends", // sums 1, 3, 5, -1, 120, -120, halved
     .in = {"u8[1,1]{1}", "f32[]{0.5}", "u8[]{0}", "i8[1,6]{1,3,5,-1,120,-120}", "f32[]{1}",
            "i8[]{0}", "f32[]{1}", "u8[]{7}"},
     .out = {"u8[1,6]{7,9,9,7,67,0}"}},
    {.name = "scales of rows",
     .in = {"u8[2,1]{4,4}", "f32[2]{0.5,2}", "u8[2]{0,1}", "i8[1,2]{1,3}", "f32[2]{1,0.5}",
            "i8[2]{0,1}", "f32[]{1}", "u8[]{0}"},
     .out = {"u8[2,2]{2,2,6,6}"}},
    {.name = "scales of the rows of each batch",
     .in = {"u8[2,1,1]{4,4}", "f32[2,1,1]{0.5,2}", "u8[2,1,1]{0,1}", "i8[2,1,1]{1,3}",
            "f32[2,1,1]{1,0.5}", "i8[2,1,1]{0,1}", "f32[]{1}", "u8[]{0}"},
     .out = {"u8[2,1,1]{2,6}"}},
    {.name = "scales of 16 bits",
     .in = {"u8[1,2]{1,2}", "f16[]{0.5}", "u8[]{0}", "i8[2,1]{4,6}", "f16[]{0.5}", "i8[]{0}",
            "f16[]{2}", "i8[]{-3}"},
     .out = {"i8[1,1]{-1}"},
     .opset = 21},
    {.name = "a scale of 0",
     .in = {"u8[1,1]{1}", "f32[]{1}", "u8[]{0}", "i8[1,3]{1,-1,0}", "f32[]{1}", "i8[]{0}",
            "f32[]{0}", "u8[]{7}"},
     .out = {"u8[1,3]{255,0,255}"}},
    {.name = "no rows",
     .in = {"u8[0,2]", SCALE, ZERO, "u8[2,3]", SCALE, ZERO, SCALE, ZERO},
     .out = {"u8[0,3]"}},
    {.name = "large",
     .in = {"u8[37,130]", "f32[37] in 0.001..0.01", "u8[37]", "i8[130,517]",
            "f32[517] in 0.001..0.01", "i8[517]", "f32[] in 0.01..0.1", "u8[]"}},
    {.name = "two scales of y",
     .in = {"u8[2,3]", SCALE, ZERO, "u8[3,2]", SCALE, ZERO, "f32[2]", ZERO},
     .error = OT_ERR_INVALID},
    {.name = "more scales than rows",
     .in = {"u8[2,3]", "f32[3]", ZERO, "u8[3,2]", SCALE, ZERO, SCALE, ZERO},
     .error = OT_ERR_INVALID},
    {.name = "more scales than columns",
     .in = {"u8[2,3]", SCALE, ZERO, "u8[3,2]", "f32[3]", ZERO, SCALE, ZERO},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("QLinearMatMul", 10, qlinear_matmul_cases)
