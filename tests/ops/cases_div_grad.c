// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case div_grad_cases[] = {
    {.name = "ONNX Runtime's values",
     .in = {"f32[2]{1,2}", "f32[2]{3,4}", "f32[1]{2}"},
     .out = {"f32[2]{0.5,1}", "f32[1]{-2.75}"}},
    {.name = "both stretched",
     .in = {"f32[3,4]", "f32[3,1]", "f32[4] in 1..2"},
     .out = {"f32[3,1]", "f32[4]"}},
    {.name = "more axes",
     .in = {"f32[2,3,4]", "f32[4]", "f32[2,3,4] in 1..2"},
     .out = {"f32[4]", "f32[2,3,4]"}},
    {.name = "a divisor a row",
     .in = {"f32[2,3,37]", "f32[2,3,37]", "f32[2,3,1] in 1..2"},
     .out = {"f32[2,3,37]", "f32[2,3,1]"}},
    {.name = "a divisor a row, second only",
     .in = {"f32[3,16]", "f32[3,16]", "f32[3,1] in 1..2"},
     .out = {"", "f32[3,1]"}},
    {.name = "a divisor for each", .in = {"f32[3,5]", "f32[3,5]", "f32[3,5] in 1..2"}},
    {.name = "first only", .in = {"f32[3,4]", "f32[3,4]", "f32[4] in 1..2"}, .out = {"f32[3,4]"}},
    {.name = "second only",
     .in = {"f32[3,4]", "f32[3,4]", "f32[4] in 1..2"},
     .out = {"", "f32[4]"}},
    {.name = "dY of another shape",
     .in = {"f32[7]", "f32[3,4]", "f32[4]"},
     .error = OT_ERR_INVALID},
    {.name = "shapes do not fit", .in = {"f32[2]", "f32[2]", "f32[3]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.DivGrad", 1, div_grad_cases)
