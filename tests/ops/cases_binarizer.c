// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case binarizer_cases[] = {
    RECORDED_BINARIZER,
    {.name = "integers",
     .in = {"i64[3]{-2,1,3}"},
     .attrs = "threshold = 1.0",
     .out = {"i64[3]{0,0,1}"}},
    {.name = "integers of 32 bits",
     .in = {"i32[2]{-2,1}"},
     .attrs = "threshold = -2.5",
     .out = {"i32[2]{1,1}"}},
    {.name = "not a number, and infinity",
     .in = {"f32[3]{nan,inf,-inf}"},
     .out = {"f32[3]{0,1,0}"}},
    {.name = "large", .in = {"f32[70,601]"}},
    {.name = "empty", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}},
    {.name = "bool", .in = {"bool[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("ai.onnx.ml.Binarizer", 1, binarizer_cases)
