// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case imputer_cases[] = {
    RECORDED_IMPUTER,
    {.name = "what is not a number",
     .in = {"f32[2,2]{nan,1,2,nan}"},
     .attrs = "imputed_value_floats = [5.0, 6.0], replaced_value_float = nan",
     .out = {"f32[2,2]{5,1,2,6}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "integers of 32 bits",
     .in = {"i32[3]{1,0,1}"},
     .attrs = "imputed_value_int64s = [7]",
     .out = {"i32[3]{1,7,1}"}},
    {.name = "empty", .in = {"f32[0,2]"}, .attrs = "imputed_value_floats = [5.0, 6.0]"},
    {.name = "values of integers for floats",
     .in = {"f32[2,2]"},
     .attrs = "imputed_value_int64s = [7]",
     .error = OT_ERR_INVALID},
    {.name = "no values", .in = {"i64[2,2]"}, .error = OT_ERR_INVALID},
    {.name = "more values than features",
     .in = {"f32[2,2]"},
     .attrs = "imputed_value_floats = [5.0, 6.0, 7.0]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnx.ml.Imputer", 1, imputer_cases)
