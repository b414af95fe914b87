// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

#define SCALE "f32[]{0.5}"
#define ZERO "u8[]{3}"

static const ot_op_case qlinear_conv_cases[] = {
    RECORDED_Q_LINEAR_CONV,
    {.name = "zero points of channels of groups", // (4 - 1) * (2 - 1) + 3, (5 - 1) * (1 - 2) - 4
     .in = {"u8[1,2,1,1]{4,5}", "f32[]{1}", "u8[]{1}", "i8[2,1,1,1]{2,1}", "f32[2]{1,0.5}",
            "i8[2]{1,2}", "f32[]{1}", "u8[]{10}", "i32[2]{3,-4}"},
     .attrs = "group = 2",
     .out = {"u8[1,2,1,1]{16,6}"}},
    {.name = "no images",
     .in = {"u8[0,2,5,5]", SCALE, ZERO, "u8[3,2,3,3]", SCALE, ZERO, SCALE, ZERO},
     .out = {"u8[0,3,3,3]"}},
    {.name = "large",
     .in = {"u8[2,8,20,20]", "f32[] in 0.01..0.02", "u8[]", "i8[24,8,3,3]", "f32[24] in 0.01..0.02",
            "i8[24]", "f32[] in 0.01..0.1", "i8[]", "i32[24]"}},
    {.name = "scales of other channels",
     .in = {"u8[1,2,5,5]", SCALE, ZERO, "u8[3,2,3,3]", "f32[2]", ZERO, SCALE, ZERO},
     .error = OT_ERR_INVALID},
    {.name = "two scales of X",
     .in = {"u8[1,2,5,5]", "f32[2]", ZERO, "u8[3,2,3,3]", SCALE, ZERO, SCALE, ZERO},
     .error = OT_ERR_INVALID},
    {.name = "two scales of Y",
     .in = {"u8[1,2,5,5]", SCALE, ZERO, "u8[3,2,3,3]", SCALE, ZERO, "f32[2]", ZERO},
     .error = OT_ERR_INVALID},
    {.name = "a bias of other channels",
     .in = {"u8[1,2,5,5]", SCALE, ZERO, "u8[3,2,3,3]", SCALE, ZERO, SCALE, ZERO, "i32[2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("QLinearConv", 10, qlinear_conv_cases)
