// SPDX-License-Identifier: Apache-2.0
// Checked against central differences by the cases of LRN.
#include "harness.h"

static const ot_op_case lrn_grad_cases[] = {
    {.name = "usual", .in = {"f32[2,5,3,3]", "f32[2,5,3,3]"}, .attrs = "size = 3, alpha = 0.8"},
    {.name = "another power",
     .in = {"f32[2,5,3]", "f32[2,5,3]"},
     .attrs = "size = 4, alpha = 0.8, beta = 0.6, bias = 2.0"},
    {.name = "several threads",
     .in = {"f32[3,20,30,31]", "f32[3,20,30,31]"},
     .attrs = "size = 5, alpha = 0.5"},
    {.name = "other shapes",
     .in = {"f32[2,5]", "f32[2,4]"},
     .attrs = "size = 3",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.LRNGrad", 1, lrn_grad_cases)
