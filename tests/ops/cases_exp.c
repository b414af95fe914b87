// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case exp_cases[] = {
    {.name = "known values",
     .in = {"f32[13]{-3.5,-1,-0.25,0,0.25,1,3.5,10,-20,-inf,nan,88,-87}"},
     .out = {"f32[13]{0.0301973834,0.367879441,0.778800783,1,1.28402542,2.71828183,33.115452,22026."
             "4658,2.06115362e-09,0,nan,1.65163625e+38,1.64581143e-38}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[13]{-3.5,-1,-0.25,0,0.25,1,3.5,10,-20,-inf,nan,88,-87}"},
     .out = {"f64[13]{0.0301973834,0.367879441,0.778800783,1,1.28402542,2.71828183,33.115452,22026."
             "4658,2.06115362e-09,0,nan,1.65163625e+38,1.64581143e-38}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in -80..80"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {.name = "edges of vectors", .in = {"f32[N]"}, .edges = "N vector"},
    {0},
};
OT_OP_TEST("Exp", 13, exp_cases)
