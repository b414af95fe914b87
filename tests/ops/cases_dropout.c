// SPDX-License-Identifier: Apache-2.0
// What is random is tested in tests/unit/ops/test_dropout.c.
#include "ops/harness.h"

static const ot_op_case dropout_cases[] = {
    {.name = "inference",
     .in = {"f32[3]{1,2,3}", "f32[]{0.5} const"},
     .out = {"f32[3]{1,2,3}", "bool[3]{1,1,1}"}},
    {.name = "no ratio", .in = {"f32[3]{1,2,3}"}, .out = {"f32[3]{1,2,3}"}},
    {.name = "training, ratio 0",
     .in = {"f32[2,2]", "f32[]{0} const", "bool[]{1} const"},
     .out = {"f32[2,2]", "bool[2,2]{1,1,1,1}"}},
    {.name = "training",
     .in = {"f32[50]", "f32[]{0.25} const", "bool[]{1} const"},
     .out = {"f32[50]", "bool[50]"}},
    {.name = "opset 7",
     .in = {"f32[3]{1,2,3}"},
     .attrs = "ratio = 0.5",
     .out = {"f32[3]{1,2,3}"},
     .opset = 7},
    {.name = "ratio 1", .in = {"f32[3]", "f32[]{1}", "bool[]{1}"}, .error = OT_ERR_INVALID},
    {.name = "ratio of two elements", .in = {"f32[3]", "f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Dropout", 13, dropout_cases)

static const ot_op_case dropout_grad_cases[] = {
    {.name = "values",
     .in = {"f32[2]{1,2}", "bool[2]{1,0}", "f32[]{0.25}"},
     .out = {"f32[2]{1.33333333,0}"}},
    {.name = "training",
     .in = {"f32[2]{1,2}", "bool[2]{1,0}", "f32[]{0.5}", "bool[]{1}"},
     .out = {"f32[2]{2,0}"}},
    {.name = "not training",
     .in = {"f32[2]{1,2}", "bool[2]{1,1}", "f32[]{0.5}", "bool[]{0}"},
     .out = {"f32[2]{1,2}"}},
    {.name = "a mask of another shape", .in = {"f32[3]", "bool[2]"}, .error = OT_ERR_INVALID},
    {.name = "no ratio", .in = {"f32[3]", "bool[3]", "f32[0]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.DropoutGrad", 1, dropout_grad_cases)
