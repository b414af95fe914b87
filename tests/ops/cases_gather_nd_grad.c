// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case gather_nd_grad_cases[] = {
    {.name = "elements",
     .in = {"i64[2]{2,2} const", "i64[3,2]{0,1,1,0,0,1} const", "f32[3]{1,2,3}"},
     .out = {"f32[2,2]{0,4,2,0}"}},
    {.name = "slices",
     .in = {"i64[2]{3,2} const", "i64[2,1]{2,-1} const", "f32[2,2]{1,2,3,4}"},
     .out = {"f32[3,2]{0,0,0,0,4,6}"}},
    {.name = "a batch",
     .in = {"i64[2]{2,3} const", "i64[2,1]{2,0} const", "f32[2]{5,6}"},
     .attrs = "batch_dims = 1",
     .out = {"f32[2,3]{0,0,5,6,0,0}"}},
    {.name = "an index out of range",
     .in = {"i64[1]{2} const", "i64[1,1]{2}", "f32[1]"},
     .error = OT_ERR_INVALID},
    {.name = "tuples too long",
     .in = {"i64[1]{2} const", "i64[1,2]{0,0} const", "f32[1]"},
     .error = OT_ERR_INVALID},
    {.name = "batches differ",
     .in = {"i64[2]{2,3} const", "i64[1,1]{2} const", "f32[1]"},
     .attrs = "batch_dims = 1",
     .error = OT_ERR_INVALID},
    {.name = "indices are a scalar",
     .in = {"i64[2]{2,3} const", "i64[]{2} const", "f32[1]"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.GatherNDGrad", 1, gather_nd_grad_cases)
