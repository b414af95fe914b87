// SPDX-License-Identifier: Apache-2.0
// Values: ONNX Runtime's.
#include "harness.h"

#define INPUTS                                                                                     \
    "f32[2,3]{1,2,4,-1,0.5,2}", "f32[2,3]{-0.5690414,-1.534521,4.258905,1.724743,-3.449485,0.25}", \
        "f32[3]{1,2,3}", "f32[3]{0.5,-1,0.25}", "f32[2,1]{0.8017811,0.6123713}"
static const ot_op_case invertible_layer_normalization_grad_cases[] = {
    {.name = "as ONNX Runtime has it",
     .in = {INPUTS},
     .out = {"f32[2,3]{0.2290537,-0.3436273,0.1145725,-1.224745,-1.224741,2.449485}",
             "f32[3]{-2.293784,-1.146892,5.345207}", "f32[3]{0,2.5,6}"},
     .tolerance = 100}, // the output has six digits
    {.name = "only the gradient of X",
     .in = {INPUTS},
     .out = {"f32[2,3]{0.2290537,-0.3436273,0.1145725,-1.224745,-1.224741,2.449485}"},
     .tolerance = 100},
    {.name = "two axes",
     .in = {"f32[4,3,5]", "f32[4,3,5]", "f32[3,5] in 0.5..2", "f32[3,5]", "f32[4,1,1] in 0.5..2"},
     .attrs = "axis = 1",
     .out = {"f32[4,3,5]", "f32[3,5]", "f32[3,5]"}},
    {.name = "a bias of another length",
     .in = {"f32[2,3]", "f32[2,3]", "f32[3]", "f32[4]", "f32[2,1]"},
     .error = OT_ERR_INVALID},
    {.name = "deviations of another shape",
     .in = {"f32[2,3]", "f32[2,3]", "f32[3]", "f32[3]", "f32[2]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.InvertibleLayerNormalizationGrad", 1,
           invertible_layer_normalization_grad_cases)
