// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case dynamic_quantize_linear_cases[] = {
    RECORDED_DYNAMIC_QUANTIZE_LINEAR,
    {.name = "empty", .in = {"f32[0,3]"}, .out = {"u8[0,3]", "f32[]{1}", "u8[]{0}"}},
    {.name = "not a number", .in = {"f32[3]{nan,0,255}"}, .out = {"u8[3]", "f32[]{1}", "u8[]{0}"}},
    {.name = "large", .in = {"f32[70,601]"}},
    {.name = "integers", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("DynamicQuantizeLinear", 11, dynamic_quantize_linear_cases)
