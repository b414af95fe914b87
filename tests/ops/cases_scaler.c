// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case scaler_cases[] = {
    RECORDED_SCALER,
    {.name = "offset alone",
     .in = {"f32[2,2]{1,2,3,4}"},
     .attrs = "offset = [0.5, 1.0]",
     .out = {"f32[2,2]{0.5,1,2.5,3}"}},
    {.name = "scale alone", .in = {"f32[2]{1,2}"}, .attrs = "scale = [3]", .out = {"f32[2]{3,6}"}},
    {.name = "neither", .in = {"i32[2]{1,2}"}, .out = {"f32[2]{1,2}"}},
    {.name = "f64 stays", .in = {"f64[1]{1}"}, .attrs = "scale = [0.5]", .out = {"f64[1]{0.5}"}},
    {.name = "three axes",
     .in = {"f32[2,1,2]"},
     .attrs = "offset = [0.5, 1.0], scale = [2.0, 3.0]",
     .out = {"f32[2,1,2]"},
     .flags = OT_CASE_OPEN},
    {.name = "empty", .in = {"f32[0,2]"}, .attrs = "offset = [0.5, 1.0]", .out = {"f32[0,2]"}},
    {.name = "fewer scales than offsets",
     .in = {"f32[2,2]"},
     .attrs = "offset = [0.5, 1.0], scale = [2.0]",
     .error = OT_ERR_INVALID},
    {.name = "more offsets than features",
     .in = {"f32[2,2]"},
     .attrs = "offset = [0.5, 1.0, 2.0]",
     .error = OT_ERR_INVALID},
    {.name = "more scales than features",
     .in = {"f32[2,2]"},
     .attrs = "scale = [0.5, 1.0, 2.0]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ai.onnx.ml.Scaler", 1, scaler_cases)
