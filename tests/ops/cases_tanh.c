// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case tanh_cases[] = {
    {.name = "known values",
     .in = {"f32[15]{-3.5,-1,-0.25,0,0.25,1,3.5,-20,20,0.0001,-0.001,0.01,0.6,0.7,nan}"},
     .out = {"f32[15]{-0.998177898,-0.761594156,-0.244918662,0,0.244918662,0.761594156,0.998177898,"
             "-1,1,9.99999997e-05,-0.000999999667,0.00999966668,0.537049567,0.604367777,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f64",
     .in = {"f64[15]{-3.5,-1,-0.25,0,0.25,1,3.5,-20,20,0.0001,-0.001,0.01,0.6,0.7,nan}"},
     .out = {"f64[15]{-0.998177898,-0.761594156,-0.244918662,0,0.244918662,0.761594156,0.998177898,"
             "-1,1,9.99999997e-05,-0.000999999667,0.00999966668,0.537049567,0.604367777,nan}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "matrix", .in = {"f32[5,7]"}, .out = {"f32[5,7]"}},
    {.name = "scalar", .in = {"f32[]"}, .out = {"f32[]"}},
    {.name = "empty", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}},
    {.name = "large",
     .in = {"f32[3,17001] in -10..10"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "opset 7", .in = {"f32[4]"}, .out = {"f32[4]"}, .opset = 7},
    {.name = "integers are not supported", .in = {"i32[3]"}, .error = OT_ERR_UNSUPPORTED},
    {.name = "edges of vectors", .in = {"f32[N]"}, .edges = "N vector"},
    {0},
};
OT_OP_TEST("Tanh", 13, tanh_cases)
