// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case broadcast_gradient_args_cases[] = {
    {.name = "ONNX Runtime's values",
     .in = {"i64[3]{2,1,3} const", "i64[2]{4,3} const"},
     .out = {"i64[1]{1}", "i64[1]{0}"}},
    {.name = "nothing stretched",
     .in = {"i64[2]{2,3} const", "i64[2]{2,3} const"},
     .out = {"i64[0]", "i64[0]"}},
    {.name = "last to first",
     .in = {"i64[1]{1} const", "i64[3]{2,3,4} const"},
     .out = {"i64[3]{2,1,0}", "i64[0]"}},
    {.name = "both ones",
     .in = {"i64[2]{1,1} const", "i64[1]{1} const"},
     .out = {"i64[0]", "i64[1]{0}"}},
    {.name = "scalars", .in = {"i64[0] const", "i64[1]{5} const"}, .out = {"i64[1]{0}", "i64[0]"}},
    {.name = "first only", .in = {"i64[1]{1} const", "i64[1]{5} const"}, .out = {"i64[1]{0}"}},
    {0},
};
OT_OP_TEST("com.microsoft.BroadcastGradientArgs", 1, broadcast_gradient_args_cases)
