// SPDX-License-Identifier: Apache-2.0
// Values by the formula.
#include "harness.h"

static const ot_op_case batch_scale_cases[] = {
    {.name = "two outputs",
     .in = {"f32[3]{1,2,-3}"},
     .attrs = "scale_0 = 0.5, scale_1 = -2.0",
     .out = {"f32[3]{0.5,1,-1.5}", "f32[3]{-2,-4,6}"}},
    {.name = "three outputs",
     .in = {"f32[2,2]{1,2,3,4}"},
     .attrs = "scale_0 = 1.0, scale_1 = 2.0, scale_2 = 3.0",
     .out = {"f32[2,2]{1,2,3,4}", "f32[2,2]{2,4,6,8}", "f32[2,2]{3,6,9,12}"}},
    {.name = "empty",
     .in = {"f32[0,2]"},
     .attrs = "scale_0 = 1.0, scale_1 = 1.0",
     .out = {"f32[0,2]", "f32[0,2]"}},
    {.name = "without a scale", .in = {"f32[3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.BatchScale", 1, batch_scale_cases)
