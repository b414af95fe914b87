// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case slice_grad_cases[] = {
    {.name = "steps, from ONNX Runtime",
     .in = {"f32[2]{1,2}", "i64[1]{5} const", "i64[1]{1} const", "i64[1]{4} const",
            "i64[1]{0} const", "i64[1]{2} const"},
     .out = {"f32[5]{0,1,0,2,0}"}},
    {.name = "default axes and steps",
     .in = {"f32[1,2]{1,2}", "i64[2]{2,3} const", "i64[2]{1,1} const", "i64[2]{2,3} const"},
     .out = {"f32[2,3]{0,0,0,0,1,2}"}},
    {.name = "backwards",
     .in = {"f32[3]{1,2,3}", "i64[1]{3} const", "i64[1]{-1} const", "i64[1]{-100} const",
            "i64[1]{0} const", "i64[1]{-1} const"},
     .out = {"f32[3]{3,2,1}"}},
    {.name = "i32 indices",
     .in = {"f32[2,1]{1,2}", "i64[2]{2,2} const", "i32[1]{1} const", "i32[1]{2} const",
            "i32[1]{1} const"},
     .out = {"f32[2,2]{0,1,0,2}"}},
    {.name = "nothing was taken",
     .in = {"f32[0]", "i64[1]{2} const", "i64[1]{1} const", "i64[1]{1} const"},
     .out = {"f32[2]{0,0}"}},
    {.name = "dY of another shape",
     .in = {"f32[3]", "i64[1]{5} const", "i64[1]{1} const", "i64[1]{3} const"},
     .error = OT_ERR_INVALID},
    {.name = "step 0",
     .in = {"f32[3]", "i64[1]{5} const", "i64[1]{1} const", "i64[1]{3} const", "i64[1]{0} const",
            "i64[1]{0} const"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.SliceGrad", 1, slice_grad_cases)
