// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case mean_cases[] = {
    {.name = "known values",
     .in = {"f32[3]{3,0,2}", "f32[3]{1,3,4}", "f32[3]{2,6,6}"},
     .out = {"f32[3]{2,3,4}"}},
    {.name = "one", .in = {"f32[3,4]"}, .out = {"f32[3,4]"}},
    {.name = "broadcast, f64", .in = {"f64[3,1]", "f64[4]"}, .out = {"f64[3,4]"}},
    {.name = "ten",
     .in = {"f32[5]", "f32[5]", "f32[5]", "f32[5]", "f32[5]", "f32[5]", "f32[5]", "f32[5]",
            "f32[5]", "f32[5]"},
     .out = {"f32[5]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[601]"},
     .out = {"f32[70,601]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 1",
     .in = {"f32[3]", "f32[3]"},
     .attrs = "consumed_inputs = [0, 0]",
     .out = {"f32[3]"},
     .opset = 1},
    {0},
};
OT_OP_TEST("Mean", 13, mean_cases)
