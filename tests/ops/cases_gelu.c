// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case gelu_cases[] = {
    {.name = "known values",
     .in = {"f32[9]{-3.5,-1,-0.25,0,0.25,1,3.5,-8,8}"},
     .out = {"f32[9]{-0.000814201777,-0.158655254,-0.100323419,0,0.149676581,0.841344746,3.4991858,"
             "-4.88498131e-15,8}"},
     .terms = 0.1, // 1 + erf
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[9]{-3.5,-1,-0.25,0,0.25,1,3.5,-8,8}"},
     .out = {"f64[9]{-0.000814201777,-0.158655254,-0.100323419,0,0.149676581,0.841344746,3.4991858,"
             "-4.88498131e-15,8}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in -6..6"},
     .out = {"f32[3,17001]"},
     .terms = 0.1, // 1 + erf
     .flags = OT_CASE_NO_GRAD},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {.name = "tanh form",
     .in = {"f32[3]{-1,0,2}"},
     .attrs = "approximate = \"tanh\"",
     .out = {"f32[3]{-0.158808,0,1.9546}"}},
    {.name = "tanh form, matrix",
     .in = {"f32[4,5]"},
     .attrs = "approximate = \"tanh\"",
     .out = {"f32[4,5]"}},
    {.name = "another form",
     .in = {"f32[3]"},
     .attrs = "approximate = \"sigmoid\"",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Gelu", 20, gelu_cases)
