// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case scatter_cases[] = {
    {.name = "columns",
     .in = {"f32[1,5]{1,2,3,4,5}", "i64[1,2]{1,3} const", "f32[1,2]{1.5,2.5}"},
     .attrs = "axis = 1",
     .out = {"f32[1,5]{1,1.5,3,2.5,5}"}},
    {.name = "rows",
     .in = {"f32[3]{1,2,3}", "i64[1]{2} const", "f32[1]{7}"},
     .out = {"f32[3]{1,2,7}"}},
    {0},
};
OT_OP_TEST("Scatter", 9, scatter_cases)
