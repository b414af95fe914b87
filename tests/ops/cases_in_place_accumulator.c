// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case in_place_accumulator_cases[] = {
    {.name = "adds", .in = {"f32[2]{1,2}", "f32[2]{10,20}"}, .out = {"f32[2]{11,22}"}},
    {.name = "a signal to add",
     .in = {"f32[2]{1,2}", "f32[2]{10,20}", "bool[1]{1}"},
     .out = {"f32[2]{11,22}"}},
    {.name = "a signal not to",
     .in = {"f32[2]{1,2}", "f32[2]{10,20}", "bool[1]{0}"},
     .out = {"f32[2]{1,2}"}},
    {.name = "shapes differ", .in = {"f32[2]", "f32[3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.InPlaceAccumulator", 1, in_place_accumulator_cases)
