// SPDX-License-Identifier: Apache-2.0
// Opset 1, where operators said by `consumed_inputs` which memory might be reused.
#include "harness.h"

static const ot_op_case opset_1_cases[] = {
    {.name = "opset 1", .in = {"f32[4] in 0.5..2"}, .out = {"f32[4]"}, .opset = 1},
    {.name = "opset 5, consumed inputs",
     .in = {"f32[4] in 0.5..2"},
     .attrs = "consumed_inputs = [0]",
     .out = {"f32[4]"},
     .opset = 5},
    {.name = "opset 6 has no consumed inputs",
     .in = {"f32[4]"},
     .attrs = "consumed_inputs = [0]",
     .opset = 6,
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST_SHARED("Abs", 1, opset_1_cases, old_abs)
OT_OP_TEST_SHARED("Exp", 1, opset_1_cases, old_exp)
OT_OP_TEST_SHARED("Floor", 1, opset_1_cases, old_floor)
OT_OP_TEST_SHARED("LeakyRelu", 1, opset_1_cases, old_leakyrelu)
OT_OP_TEST_SHARED("Log", 1, opset_1_cases, old_log)
OT_OP_TEST_SHARED("Neg", 1, opset_1_cases, old_neg)
OT_OP_TEST_SHARED("Reciprocal", 1, opset_1_cases, old_reciprocal)
OT_OP_TEST_SHARED("Relu", 1, opset_1_cases, old_relu)
OT_OP_TEST_SHARED("Sigmoid", 1, opset_1_cases, old_sigmoid)
OT_OP_TEST_SHARED("Sqrt", 1, opset_1_cases, old_sqrt)
OT_OP_TEST_SHARED("Tanh", 1, opset_1_cases, old_tanh)
