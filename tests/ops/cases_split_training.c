// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case split_training_cases[] = {
    {.name = "rows",
     .in = {"f32[3,2]{1,2,3,4,5,6}", "i64[2]{1,2} const"},
     .out = {"f32[1,2]{1,2}", "f32[2,2]{3,4,5,6}"}},
    {.name = "columns",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[2]{2,1} const"},
     .attrs = "axis = -1",
     .out = {"f32[2,2]{1,2,4,5}", "f32[2,1]{3,6}"}},
    {.name = "extents for another number of outputs",
     .in = {"f32[3]", "i64[1]{3} const"},
     .out = {"f32[1]", "f32[2]"},
     .error = OT_ERR_INVALID},
    {.name = "extents are too large",
     .in = {"f32[3]", "i64[2]{2,2} const"},
     .out = {"f32[2]", "f32[2]"},
     .error = OT_ERR_INVALID},
    {.name = "parts of numbers that are known lie far behind them",
     .in = {"i64[3]{1,2,3} const", "i64[2]{1000000,1} const"},
     .out = {"i64[1000000]", "i64[1]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.SplitTraining", 1, split_training_cases)
