// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case reduce_all_l2_cases[] = {
    {.name = "two tensors", .in = {"f32[2]{1,2}", "f32[2,1]{2,4}"}, .out = {"f32[]{5}"}},
    {.name = "one", .in = {"f32[2]{3,-4}"}, .out = {"f32[]{5}"}},
    {.name = "f64", .in = {"f64[1]{2}"}, .out = {"f64[]{2}"}},
    {.name = "no elements", .in = {"f32[0]"}, .out = {"f32[]{0}"}},
    {.name = "many elements", .in = {"f32[1000]", "f32[3,7]"}, .out = {"f32[]"}},
    {0},
};
OT_OP_TEST("com.microsoft.ReduceAllL2", 1, reduce_all_l2_cases)
