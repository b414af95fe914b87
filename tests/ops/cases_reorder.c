// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

// The harness runs every pair of the forms of images.
static const ot_op_case reorder_cases[] = {
    {.name = "row-major", .in = {"f32[2,3,4,5]"}, .out = {"f32[2,3,4,5]"}},
    {.name = "integers", .in = {"i64[2,3]{1,2,3,4,5,6}"}, .out = {"i64[2,3]{1,2,3,4,5,6}"}},
    {.name = "no elements", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.Reorder", 1, reorder_cases)
