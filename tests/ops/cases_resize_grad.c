// SPDX-License-Identifier: Apache-2.0
// Checked against central differences by the cases of Resize; here against the reference in f64.
#include "harness.h"

static const ot_op_case resize_grad_cases[] = {
    {.name = "nearest",
     .in = {"f32[1,1,2,6]{1,2,3,4,5,6,7,8,9,10,11,12}", "i64[4]{1,1,1,3} const", "",
            "f32[4]{1,1,2,2} const"},
     .out = {"f32[1,1,1,3]{18,26,34}"}},
    {.name = "linear",
     .in = {"f32[2,3,8,10]", "i64[4]{2,3,4,5} const", "", "f32[4]{1,1,2,2} const"},
     .attrs = "mode = \"linear\"",
     .out = {"f32[2,3,4,5]"}},
    {.name = "large",
     .in = {"f32[2,8,60,62]", "i64[4]{2,8,30,31} const", "", "f32[4]{1,1,2,2} const"},
     .attrs = "mode = \"cubic\"",
     .out = {"f32[2,8,30,31]"}},
    {.name = "another shape than X is resized to",
     .in = {"f32[2,3]", "i64[2]{2,3} const", "", "f32[2]{1,2} const"},
     .error = OT_ERR_INVALID},
    {.name = "a shape of other axes",
     .in = {"f32[2,3]", "i64[1]{3} const", "", "f32[2]{1,1} const"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ResizeGrad", 1, resize_grad_cases)
