// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case is_inf_cases[] = {
    {.name = "f32", .in = {"f32[5]{1,nan,inf,-inf,0}"}, .out = {"bool[5]{0,0,1,1,0}"}},
    {.name = "positive",
     .in = {"f64[4]{1,nan,inf,-inf}"},
     .attrs = "detect_negative = 0",
     .out = {"bool[4]{0,0,1,0}"}},
    {.name = "negative",
     .in = {"f16[4]{1,nan,inf,-inf}"},
     .attrs = "detect_positive = 0",
     .out = {"bool[4]{0,0,0,1}"},
     .opset = 20},
    {.name = "neither",
     .in = {"bf16[4]{1,nan,inf,-inf}"},
     .attrs = "detect_positive = 0, detect_negative = 0",
     .out = {"bool[4]{0,0,0,0}"},
     .opset = 20},
    {.name = "images", .in = {"f32[2,16,3,3]"}, .out = {"bool[2,16,3,3]"}},
    {.name = "opset 10", .in = {"f32[3]"}, .out = {"bool[3]"}, .opset = 10},
    {0},
};
OT_OP_TEST("IsInf", 13, is_inf_cases)
