// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case one_hot_encoder_cases[] = {
    RECORDED_ONE_HOT_ENCODER,
    {.name = "no category, an error",
     .in = {"i64[2]{1,4}"},
     .attrs = "cats_int64s = [1, 2], zeros = 0",
     .error = OT_ERR_INVALID},
    {.name = "empty", .in = {"i64[0,2]"}, .attrs = "cats_int64s = [1, 2]", .out = {"f32[0,2,2]"}},
    {.name = "no categories", .in = {"i64[2]"}, .error = OT_ERR_INVALID},
    {.name = "categories of two kinds",
     .in = {"i64[2]"},
     .attrs = "cats_int64s = [1], cats_strings = [\"a\"]",
     .error = OT_ERR_INVALID},
    {.name = "strings for numbers",
     .in = {"i64[2]"},
     .attrs = "cats_strings = [\"a\"]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnx.ml.OneHotEncoder", 1, one_hot_encoder_cases)
