// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case non_zero_cases[] = {
    {.name = "a matrix", // ONNX's test_nonzero_example
     .in = {"bool[2,2]{1,0,1,1} const"},
     .out = {"i64[2,3]{0,1,1,0,0,1}"}},
    {.name = "f32, both zeros and NaN",
     .in = {"f32[6]{0,-0.0,nan,1e-40,-1,0} const"},
     .out = {"i64[1,3]{2,3,4}"}},
    {.name = "three axes", // numpy.nonzero
     .in = {"i64[2,1,3]{0,5,0,-1,0,2} const"},
     .out = {"i64[3,3]{0,1,1,0,0,0,1,0,2}"}},
    {.name = "f64", .in = {"f64[3]{0,1,-0.0} const"}, .out = {"i64[1,1]{1}"}},
    {.name = "f16", .in = {"f16[3]{-0.0,0,2} const"}, .out = {"i64[1,1]{2}"}},
    {.name = "bf16", .in = {"bf16[2]{-0.0,2} const"}, .out = {"i64[1,1]{1}"}},
    {.name = "i8, the lowest", .in = {"i8[2]{-128,0} const"}, .out = {"i64[1,1]{0}"}},
    {.name = "u16", .in = {"u16[2]{0,32768} const"}, .out = {"i64[1,1]{1}"}},
    {.name = "i32", .in = {"i32[2,2]{0,1,-2147483648,0} const"}, .out = {"i64[2,2]{0,1,1,0}"}},
    {.name = "a number has no axis", .in = {"f32[]{5} const"}, .out = {"i64[0,1]"}},
    {.name = "a zero", .in = {"f32[]{0} const"}, .out = {"i64[0,0]"}},
    {.name = "zeros alone", .in = {"f32[2,2]{0,0,0,0} const"}, .out = {"i64[2,0]"}},
    {.name = "no elements", .in = {"f32[3,0]"}, .out = {"i64[2,0]"}},
    {.name = "opset 9", .in = {"f32[2]{0,3} const"}, .out = {"i64[1,1]{1}"}, .opset = 9},
    {0},
};
OT_OP_TEST("NonZero", 13, non_zero_cases)
