// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case update_start_cases[] = {
    {.name = "behind the loss", .in = {"f32[1]"}, .out = {"bool[1]{1}"}},
    {.name = "behind outputs of several types",
     .in = {"f32[]", "f64[2,3]", "i64[4]"},
     .out = {"bool[1]{1}"}},
    {0},
};
OT_OP_TEST("ai.onnxtrain.UpdateStart", 1, update_start_cases)
