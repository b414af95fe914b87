// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case concat_training_cases[] = {
    {.name = "columns",
     .in = {"f32[2,1]{1,2}", "f32[2,2]{10,11,12,13}"},
     .attrs = "axis = 1",
     .out = {"f32[2,3]{1,10,11,2,12,13}", "i64[2]{1,2}"}},
    {.name = "lengths that nobody reads",
     .in = {"f32[1,2]{1,2}", "f32[1,2]{5,6}"},
     .attrs = "axis = -2",
     .out = {"f32[2,2]{1,2,5,6}"}},
    {.name = "ranks differ",
     .in = {"f32[2]", "f32[2,1]"},
     .attrs = "axis = 0",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.ConcatTraining", 1, concat_training_cases)
