// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case reduce_sum_training_cases[] = {
    {.name = "rows",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[1]{0} const"},
     .out = {"f32[1,3]{5,7,9}"}},
    {.name = "columns, not kept",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[1]{-1} const"},
     .attrs = "keepdims = 0",
     .out = {"f32[2]{6,15}"}},
    {.name = "empty axes",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[0]{} const"},
     .out = {"f32[1,1]{21}"}},
    {.name = "empty axes, no operation",
     .in = {"f32[2,3]{1,2,3,4,5,6}", "i64[0]{} const"},
     .attrs = "noop_with_empty_axes = 1",
     .out = {"f32[2,3]{1,2,3,4,5,6}"}},
    {.name = "i64",
     .in = {"i64[2,3]{1,2,3,4,5,6}", "i64[2]{0,1} const"},
     .attrs = "keepdims = 0",
     .out = {"i64[]{21}"}},
    {.name = "axes are missing", .in = {"f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.ReduceSumTraining", 1, reduce_sum_training_cases)
