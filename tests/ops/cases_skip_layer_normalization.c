// SPDX-License-Identifier: Apache-2.0
// Mean and factor, which ONNX Runtime does not give: by hand.
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case skip_layer_normalization_cases[] = {
    RECORDED_SKIP_LAYER_NORMALIZATION,
    {.name = "mean and factor",
     .in = {"f32[2,4]{1,2,3,4,-1,0,1,2}", "f32[2,4]{0.5,0.5,-1,2,3,-2,0,1}", "f32[4]{1,1,1,1}"},
     .out = {"f32[2,4]{-0.848528137,-0.282842712,-0.565685425,1.69705627,0.534522484,-1.60356745,0,"
             "1.06904497}",
             "f32[2,1]{3,1}", "f32[2,1]{0.565685425,0.534522484}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "no rows",
     .in = {"f32[0,3,4]", "f32[0,3,4]", "f32[4]"},
     .out = {"f32[0,3,4]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "large",
     .in = {"f32[3,70,96]", "f32[3,70,96]", "f32[96]", "f32[96]", "f32[96]"},
     .terms = 4,
     .flags = OT_CASE_NO_GRAD},
    {.name = "four axes",
     .in = {"f32[1,2,3,4]", "f32[1,2,3,4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "a skip of one axis",
     .in = {"f32[2,3,4]", "f32[4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "a skip of other positions",
     .in = {"f32[2,3,4]", "f32[2,1,4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "one skip for all of two axes",
     .in = {"f32[3,4]", "f32[1,4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "gamma of another size",
     .in = {"f32[3,4]", "f32[3,4]", "f32[3]"},
     .error = OT_ERR_INVALID},
    {.name = "beta of two axes",
     .in = {"f32[3,4]", "f32[3,4]", "f32[4]", "f32[1,4]"},
     .error = OT_ERR_INVALID},
    {.name = "bias of another size",
     .in = {"f32[3,4]", "f32[3,4]", "f32[4]", "", "f32[5]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.SkipLayerNormalization", 1, skip_layer_normalization_cases)
