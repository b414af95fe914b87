// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case skip_simplified_layer_normalization_cases[] = {
    RECORDED_SKIP_SIMPLIFIED_LAYER_NORMALIZATION,
    {.name = "factor", // 1 / sqrt(mean(x^2)) of 1, 3, 2, 4 and of 2, 0, 0, 0
     .in = {"f32[2,4]{1,2,3,4,-1,0,1,2}", "f32[2,4]{0,1,-1,0,3,0,-1,-2}", "f32[4]{1,1,1,1}"},
     .out = {"f32[2,4]", "", "f32[2,1]{0.365148372,1}"}},
    {.name = "a mean is asked for",
     .in = {"f32[3,4]", "f32[3,4]", "f32[4]"},
     .out = {"f32[3,4]", "f32[3,1]"},
     .error = OT_ERR_INVALID},
    {.name = "bias of another size",
     .in = {"f32[3,4]", "f32[3,4]", "f32[4]", "f32[3]"},
     .error = OT_ERR_INVALID},
    {.name = "a skip of other sizes",
     .in = {"f32[3,4]", "f32[2,4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.SkipSimplifiedLayerNormalization", 1,
           skip_simplified_layer_normalization_cases)
