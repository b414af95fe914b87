// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

#define TWO "coefficients = [1.0, 0.5, 2.0, -1.0], "

static const ot_op_case linear_classifier_cases[] = {
    RECORDED_LINEAR_CLASSIFIER,
    {.name = "the first of equal scores",
     .in = {"f32[2]{0,0}"},
     .attrs = TWO "classlabels_ints = [7, 4]",
     .out = {"i64[1]{7}", "f32[1,2]{0,0}"},
     .flags = OT_CASE_OPEN},
    {.name = "no rows",
     .in = {"f32[0,2]"},
     .attrs = TWO "classlabels_ints = [7, 4]",
     .out = {"i64[0]", "f32[0,2]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "no labels",
     .in = {"f32[1,2]"},
     .attrs = TWO "intercepts = [0.0, 1.0]",
     .error = OT_ERR_INVALID},
    {.name = "labels of other scores",
     .in = {"f32[1,2]"},
     .attrs = TWO "intercepts = [0.0, 1.0], classlabels_ints = [1, 2, 3]",
     .error = OT_ERR_INVALID},
    {.name = "labels of two kinds",
     .in = {"f32[1,2]"},
     .attrs = TWO "classlabels_ints = [1, 2], classlabels_strings = [\"a\", \"b\"]",
     .error = OT_ERR_INVALID},
    {.name = "probit of two classes of one score",
     .in = {"f32[1,2]"},
     .attrs = "coefficients = [1.0, 0.5], intercepts = [0.0], classlabels_ints "
              "= [1, 2], "
              "post_transform = \"PROBIT\"",
     .error = OT_ERR_INVALID},
    {.name = "coefficients of other features",
     .in = {"f32[1,3]"},
     .attrs = TWO "classlabels_ints = [7, 4]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnx.ml.LinearClassifier", 1, linear_classifier_cases)
