// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case normalizer_cases[] = {
    RECORDED_NORMALIZER,
    {.name = "the largest is below 0", // as ONNX Runtime: its sign is kept
     .in = {"f32[1,3]{-1,-4,-2}"},
     .out = {"f32[1,3]{1,4,2}"}},
    {.name = "large", .in = {"f32[70,601]"}, .attrs = "norm = \"L2\"", .flags = OT_CASE_NO_GRAD},
    {.name = "no rows", .in = {"f32[0,3]"}, .attrs = "norm = \"L1\"", .out = {"f32[0,3]"}},
    {.name = "a norm that is not known",
     .in = {"f32[2,3]"},
     .attrs = "norm = \"L3\"",
     .error = OT_ERR_INVALID},
    {.name = "three axes", .in = {"f32[2,3,1]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnx.ml.Normalizer", 1, normalizer_cases)
