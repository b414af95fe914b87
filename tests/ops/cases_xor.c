// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case xor_cases[] = {
    {.name = "known values",
     .in = {"bool[4]{0,0,1,1}", "bool[4]{0,1,0,1}"},
     .out = {"bool[4]{0,1,1,0}"}},
    {.name = "broadcast", .in = {"bool[3,1]", "bool[4]"}, .out = {"bool[3,4]"}},
    {.name = "images", .in = {"bool[2,16,3,3]", "bool[2,16,3,3]"}, .out = {"bool[2,16,3,3]"}},
    {.name = "opset 1",
     .in = {"bool[3,4]", "bool[4]"},
     .attrs = "broadcast = 1",
     .out = {"bool[3,4]"},
     .opset = 1},
    {.name = "opset 1, axis",
     .in = {"bool[3,4]", "bool[3]"},
     .attrs = "broadcast = 1, axis = 0",
     .opset = 1,
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Xor", 13, xor_cases)
static const ot_op_case opset_1_cases[] = {
    {.name = "opset 1",
     .in = {"f32[3,4]", "f32[4]"},
     .attrs = "broadcast = 1",
     .out = {"bool[3,4]"},
     .opset = 1},
    {0},
};
OT_OP_TEST_SHARED("Greater", 1, opset_1_cases, old_greater)
OT_OP_TEST_SHARED("Less", 1, opset_1_cases, old_less)
