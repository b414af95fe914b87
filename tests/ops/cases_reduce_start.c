// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

// Without other ranks it does nothing; what it asks of them is in tests/unit/exec/test_plan.c.
static const ot_op_case reduce_start_cases[] = {
    {.name = "of one gradient", .attrs = "bucket = 3", .in = {"bool[1]{1}"}},
    {.name = "of two", .attrs = "bucket = 0", .in = {"bool[1]{1}", "bool[1]{1}"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.ReduceStart", 1, reduce_start_cases)
