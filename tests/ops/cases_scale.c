// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case scale_cases[] = {
    {.name = "up", .in = {"f32[3]{1,2,3}", "f32[]{2}"}, .out = {"f32[3]{2,4,6}"}},
    {.name = "down",
     .in = {"f32[3]{1,2,3}", "i64[]{2}"},
     .attrs = "scale_down = 1",
     .out = {"f32[3]{0.5,1,1.5}"}},
    {.name = "matrix", .in = {"f32[3,4]", "f32[1]{0.3}"}, .out = {"f32[3,4]"}},
    {.name = "down by f16",
     .in = {"f32[3]{1,2,3}", "f16[]{0.5}"},
     .attrs = "scale_down = 1",
     .out = {"f32[3]{2,4,6}"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[]{3}"},
     .attrs = "scale_down = 1",
     .out = {"f32[70,601]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "scale of several elements", .in = {"f32[3]", "f32[3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.Scale", 1, scale_cases)
