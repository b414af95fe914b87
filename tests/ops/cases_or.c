// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case or_cases[] = {
    {.name = "known values",
     .in = {"bool[4]{0,0,1,1}", "bool[4]{0,1,0,1}"},
     .out = {"bool[4]{0,1,1,1}"}},
    {.name = "broadcast", .in = {"bool[3,1]", "bool[4]"}, .out = {"bool[3,4]"}},
    {.name = "matrices", .in = {"bool[3,4]", "bool[3,4]"}, .out = {"bool[3,4]"}},
    {.name = "large", .in = {"bool[60,700]", "bool[700]"}, .out = {"bool[60,700]"}},
    {.name = "opset 7", .in = {"bool[3]", "bool[3]"}, .out = {"bool[3]"}, .opset = 7},
    {.name = "not bool", .in = {"i32[3]", "i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Or", 13, or_cases)
