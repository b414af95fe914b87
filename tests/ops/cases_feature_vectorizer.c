// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case feature_vectorizer_cases[] = {
    RECORDED_FEATURE_VECTORIZER,
    {.name = "as they are",
     .in = {"f32[1,2]{1,2}", "f32[1]{3}"},
     .out = {"f32[1,3]{1,2,3}"},
     .flags = OT_CASE_OPEN},
    {.name = "none of one",
     .in = {"f32[2,2]", "f32[2,1]"},
     .attrs = "inputdimensions = [0, 1]",
     .out = {"f32[2,1]"}},
    {.name = "no rows", .in = {"f32[0,2]", "f32[0,1]"}, .out = {"f32[0,3]"}},
    {.name = "fewer sizes than inputs",
     .in = {"f32[2,2]", "f32[2,1]"},
     .attrs = "inputdimensions = [2]",
     .error = OT_ERR_INVALID},
    {.name = "a size below 0",
     .in = {"f32[2,2]"},
     .attrs = "inputdimensions = [-1]",
     .error = OT_ERR_INVALID},
    {.name = "an absurd size",
     .in = {"f32[2,2]"},
     .attrs = "inputdimensions = [9223372036854775807]",
     .error = OT_ERR_INVALID},
    {.name = "rows that differ", .in = {"f32[2,2]", "f32[3,2]"}, .error = OT_ERR_INVALID},
    {.name = "three axes", .in = {"f32[2,2,1]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnx.ml.FeatureVectorizer", 1, feature_vectorizer_cases)
