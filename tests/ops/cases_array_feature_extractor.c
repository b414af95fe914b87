// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case array_feature_extractor_cases[] = {
    RECORDED_ARRAY_FEATURE_EXTRACTOR,
    {.name = "one index", .in = {"f32[2,2]{1,2,3,4}", "i64[]{1}"}, .out = {"f32[2,1]{2,4}"}},
    {.name = "no indices", .in = {"f32[2,2]", "i64[0]"}, .out = {"f32[2,0]"}},
    {.name = "no rows", .in = {"f32[0,2]", "i64[3]{0,1,1}"}, .out = {"f32[0,3]"}},
    {.name = "a feature that is not there",
     .in = {"f32[2,2]", "i64[1]{2}"},
     .error = OT_ERR_INVALID},
    {.name = "a scalar", .in = {"f32[]", "i64[1]{0}"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnx.ml.ArrayFeatureExtractor", 1, array_feature_extractor_cases)
