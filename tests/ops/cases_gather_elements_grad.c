// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case gather_elements_grad_cases[] = {
    {.name = "columns, from ONNX Runtime",
     .in = {"f32[2,2]{1,2,3,4}", "i64[2]{2,3} const", "i64[2,2]{0,0,-1,1} const"},
     .attrs = "axis = 1",
     .out = {"f32[2,3]{3,0,0,0,4,3}"}},
    {.name = "rows",
     .in = {"f32[1,2]{1,2}", "i64[2]{3,2} const", "i32[1,2]{2,0} const"},
     .out = {"f32[3,2]{0,2,0,0,1,0}"}},
    {.name = "an index out of range",
     .in = {"f32[1]", "i64[1]{3} const", "i64[1]{3}"},
     .error = OT_ERR_INVALID},
    {.name = "dY of another shape",
     .in = {"f32[2]", "i64[1]{3} const", "i64[1]{1} const"},
     .error = OT_ERR_INVALID},
    {.name = "more columns than data",
     .in = {"f32[1,3]", "i64[2]{2,2} const", "i64[1,3]{0,0,0} const"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.GatherElementsGrad", 1, gather_elements_grad_cases)
