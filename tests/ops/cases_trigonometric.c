// SPDX-License-Identifier: Apache-2.0
// Functions that the C library computes; values are PyTorch's.
#include "harness.h"

static const ot_op_case acos_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{2.69056584,2.0943951,1.57179633,1.57079633,1.31811607,0.722734248}"}},
    {.name = "f64, opset 7", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 7},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Acos", 22, acos_cases)
static const ot_op_case acosh_cases[] = {
    {.name = "known values",
     .in = {"f32[4]{1.25,1.5,2,10}"},
     .out = {"f32[4]{0.693147181,0.96242365,1.3169579,2.99322285}"}},
    {.name = "f64, opset 9", .in = {"f64[5,7] in 1.1..5"}, .out = {"f64[5,7]"}, .opset = 9},
    {.name = "large",
     .in = {"f32[3,17001] in 1.1..5"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Acosh", 22, acosh_cases)
static const ot_op_case asin_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{-1.11976951,-0.523598776,-0.00100000017,0,0.252680255,0.848062079}"}},
    {.name = "f64, opset 7", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 7},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Asin", 22, asin_cases)
static const ot_op_case asinh_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{-0.808866936,-0.481211825,-0.000999999833,0,0.247466462,0.693147181}"}},
    {.name = "f64, opset 9", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 9},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Asinh", 22, asinh_cases)
static const ot_op_case atan_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{-0.732815102,-0.463647609,-0.000999999667,0,0.244978663,0.643501109}"}},
    {.name = "f64, opset 7", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 7},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Atan", 22, atan_cases)
static const ot_op_case atanh_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{-1.47221949,-0.549306144,-0.00100000033,0,0.255412812,0.972955075}"}},
    {.name = "f64, opset 9", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 9},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Atanh", 22, atanh_cases)
static const ot_op_case cosh_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{1.43308639,1.12762597,1.0000005,1,1.0314131,1.29468328}"}},
    {.name = "f64, opset 9", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 9},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Cosh", 22, cosh_cases)
static const ot_op_case sinh_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{-1.02651673,-0.521095305,-0.00100000017,0,0.252612317,0.822316732}"}},
    {.name = "f64, opset 9", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 9},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Sinh", 22, sinh_cases)
static const ot_op_case tan_cases[] = {
    {.name = "known values",
     .in = {"f32[6]{-0.9,-0.5,-0.001,0,0.25,0.75}"},
     .out = {"f32[6]{-1.26015822,-0.54630249,-0.00100000033,0,0.255341921,0.93159646}"}},
    {.name = "f64, opset 7", .in = {"f64[5,7] in -0.9..0.9"}, .out = {"f64[5,7]"}, .opset = 7},
    {.name = "large",
     .in = {"f32[3,17001] in -0.9..0.9"},
     .out = {"f32[3,17001]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("Tan", 22, tan_cases)
