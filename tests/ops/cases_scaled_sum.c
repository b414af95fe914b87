// SPDX-License-Identifier: Apache-2.0
// Values by the formula.
#include "harness.h"

static const ot_op_case scaled_sum_cases[] = {
    {.name = "two terms",
     .in = {"f32[3]{1,2,-3}", "f32[3]{4,0,1}"},
     .attrs = "scale_0 = 0.5, scale_1 = -2.0",
     .out = {"f32[3]{-7.5,1,-3.5}"}},
    {.name = "three terms",
     .in = {"f32[2,2]{1,2,3,4}", "f32[2,2]{1,1,1,1}", "f32[2,2]{0,1,0,-1}"},
     .attrs = "scale_0 = 1.0, scale_1 = 2.0, scale_2 = 3.0",
     .out = {"f32[2,2]{3,7,5,3}"}},
    {.name = "large",
     .in = {"f32[300,200]", "f32[300,200]", "f32[300,200]"},
     .attrs = "scale_0 = 0.3, scale_1 = 0.7, scale_2 = -1.1",
     .out = {"f32[300,200]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "empty",
     .in = {"f32[0,2]", "f32[0,2]"},
     .attrs = "scale_0 = 1.0, scale_1 = 1.0",
     .out = {"f32[0,2]"}},
    {.name = "another shape",
     .in = {"f32[3]", "f32[4]"},
     .attrs = "scale_0 = 1.0, scale_1 = 1.0",
     .error = OT_ERR_INVALID},
    {.name = "without a scale", .in = {"f32[3]", "f32[3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.ScaledSum", 1, scaled_sum_cases)
