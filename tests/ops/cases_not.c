// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case not_cases[] = {
    {.name = "known values", .in = {"bool[2]{0,1}"}, .out = {"bool[2]{1,0}"}},
    {.name = "large", .in = {"bool[60,700]"}, .out = {"bool[60,700]"}},
    {.name = "not bool", .in = {"f32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Not", 13, not_cases)
