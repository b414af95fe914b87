// SPDX-License-Identifier: Apache-2.0
// Values: those of BatchNormRelu's cases, from the statistics stated there.
#include "harness.h"

#define X24 "f32[2,3,2,2]{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4,2,3,2,-3}"

static const ot_op_case batch_norm_relu_again_cases[] = {
    {.name = "images",
     .in = {X24, "f32[3]{1,2,-0.5}", "f32[3]{0,1,-2}", "f32[3]{0.375,-0.375,0.125}",
            "f32[3]{0.4175962,0.316475,0.4789469}"},
     .out = {"f32[2,3,2,2]{0.2609976,1.513786,0.2609976,0,0,0,3.136206,2.503256,0,0,0,0,0,0,0,"
             "1.09619,3.136206,0,3.136206,0,0,0,0,0}"}},
    {.name = "rows without spatial axes",
     .in = {"f32[4,1]{1,2,4,7}", "f32[1]{2}", "f32[1]{0.5}", "f32[1]{3.5}", "f32[1]{0.436435}"},
     .out = {"f32[4,1]{0,0,0.936435,3.555045}"}},
    {.name = "many channels",
     .in = {"f32[4,70,9,9]", "f32[70]", "f32[70]", "f32[70]", "f32[70] in 0.7..1"},
     .out = {"f32[4,70,9,9]"}},
    {.name = "empty batch",
     .in = {"f32[0,3,2]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"},
     .out = {"f32[0,3,2]"}},
    {.name = "statistics of other channels",
     .in = {"f32[2,3,2]", "f32[3]", "f32[3]", "f32[2]", "f32[3]"},
     .error = OT_ERR_INVALID},
    {.name = "no channels",
     .in = {"f32[2]", "f32[2]", "f32[2]", "f32[2]", "f32[2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.BatchNormReluAgain", 1, batch_norm_relu_again_cases)
