// SPDX-License-Identifier: Apache-2.0
// Operators that draw: types, shapes and errors. What they draw is in unit/ops/test_random.c.
#include "harness.h"

static const ot_op_case random_normal_cases[] = {
    {.name = "f32", .attrs = "shape = [2, 3], mean = 1.0, scale = 2.0", .out = {"f32[2,3]"}},
    {.name = "f64", .attrs = "shape = [70, 40], dtype = 11, seed = 3.5", .out = {"f64[70,40]"}},
    {.name = "f16", .attrs = "shape = [4], dtype = 10", .out = {"f16[4]"}},
    {.name = "a number", .attrs = "shape = []", .out = {"f32[]"}},
    {.name = "nothing", .attrs = "shape = [2, 0]", .out = {"f32[2,0]"}},
    {.name = "opset 7", .attrs = "shape = [3]", .out = {"f32[3]"}, .opset = 7},
    {.name = "no shape", .attrs = "scale = 1.0", .error = OT_ERR_INVALID},
    {.name = "a negative size", .attrs = "shape = [2, -1]", .error = OT_ERR_INVALID},
    {.name = "integers", .attrs = "shape = [2], dtype = 7", .error = OT_ERR_INVALID},
    {.name = "more bytes than can be",
     .attrs = "shape = [4611686018427387904, 4]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("RandomNormal", 22, random_normal_cases)

static const ot_op_case random_uniform_cases[] = {
    {.name = "f32", .attrs = "shape = [2, 3], low = -1.0, high = 2.0", .out = {"f32[2,3]"}},
    {.name = "one value",
     .attrs = "shape = [2], low = 1.5, high = 1.5",
     .out = {"f32[2]{1.5,1.5}"}},
    {.name = "bf16", .attrs = "shape = [4], dtype = 16", .out = {"bf16[4]"}},
    {.name = "bool", .attrs = "shape = [2], dtype = 9", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("RandomUniform", 22, random_uniform_cases)

static const ot_op_case random_normal_like_cases[] = {
    {.name = "the type of the input", .in = {"f32[2,3]"}, .out = {"f32[2,3]"}},
    {.name = "of integers", .in = {"i64[2,3]"}, .attrs = "dtype = 1", .out = {"f32[2,3]"}},
    {.name = "f64 of bool",
     .in = {"bool[70,40]"},
     .attrs = "dtype = 11, mean = -1.0, scale = 0.5, seed = 7.0",
     .out = {"f64[70,40]"}},
    {.name = "f16", .in = {"f16[3]"}, .out = {"f16[3]"}},
    {.name = "opset 7", .in = {"f32[2]"}, .out = {"f32[2]"}, .opset = 7},
    {.name = "integers like integers", .in = {"i64[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("RandomNormalLike", 22, random_normal_like_cases)

static const ot_op_case random_uniform_like_cases[] = {
    {.name = "the type of the input", .in = {"f32[2,3]"}, .out = {"f32[2,3]"}},
    {.name = "of u8",
     .in = {"u8[2]"},
     .attrs = "dtype = 1, low = 2.0, high = 3.0",
     .out = {"f32[2]"}},
    {.name = "an empty tensor", .in = {"f32[0,2]"}, .out = {"f32[0,2]"}},
    {.name = "another type", .in = {"f32[2]"}, .attrs = "dtype = 6", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("RandomUniformLike", 22, random_uniform_like_cases)

static const ot_op_case bernoulli_cases[] = {
    {.name = "certain", .in = {"f32[4]{0,1,1,0} const"}, .out = {"f32[4]{0,1,1,0}"}},
    {.name = "f64", .in = {"f64[2,2]{0,1,1,0} const"}, .out = {"f64[2,2]{0,1,1,0}"}},
    {.name = "f16", .in = {"f16[2]{0,1} const"}, .out = {"f16[2]{0,1}"}},
    {.name = "bool", .in = {"f32[2]{0,1} const"}, .attrs = "dtype = 9", .out = {"bool[2]{0,1}"}},
    {.name = "i64", .in = {"f32[2]{0,1} const"}, .attrs = "dtype = 7", .out = {"i64[2]{0,1}"}},
    {.name = "bf16 of f32",
     .in = {"f32[2]{0,1} const"},
     .attrs = "dtype = 16",
     .out = {"bf16[2]{0,1}"}},
    {.name = "u8 of bf16",
     .in = {"bf16[2]{0,1} const"},
     .attrs = "dtype = 2",
     .out = {"u8[2]{0,1}"}},
    {.name = "several threads",
     .in = {"f32[80,50] in 0..1"},
     .attrs = "seed = 2.0",
     .out = {"f32[80,50]"}},
    {.name = "empty", .in = {"f32[0]"}, .out = {"f32[0]"}},
    {.name = "opset 15", .in = {"f32[1]{1} const"}, .out = {"f32[1]{1}"}, .opset = 15},
    {.name = "above 1", .in = {"f32[2]{0,1.5}"}, .error = OT_ERR_INVALID},
    {.name = "below 0", .in = {"f64[2]{-0.1,1}"}, .error = OT_ERR_INVALID},
    {.name = "NaN", .in = {"f32[1]{nan}"}, .error = OT_ERR_INVALID},
    {.name = "strings", .in = {"f32[1]{0} const"}, .attrs = "dtype = 8", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Bernoulli", 22, bernoulli_cases)

static const ot_op_case multinomial_cases[] = {
    {.name = "certain",
     .in = {"f32[2,3]{-inf,5,-inf,0,-inf,-inf}"},
     .attrs = "sample_size = 2",
     .out = {"i32[2,2]{1,1,0,0}"}},
    {.name = "i64 of f64",
     .in = {"f64[1,2]{-inf,-700}"},
     .attrs = "dtype = 7",
     .out = {"i64[1,1]{1}"}},
    {.name = "several threads",
     .in = {"f32[40,7]"},
     .attrs = "sample_size = 90, seed = 1.0",
     .out = {"i32[40,90]"}},
    {.name = "no samples", .in = {"f32[2,3]"}, .attrs = "sample_size = 0", .out = {"i32[2,0]"}},
    {.name = "no rows", .in = {"f32[0,3]"}, .out = {"i32[0,1]"}},
    {.name = "opset 7", .in = {"f32[1,1]"}, .out = {"i32[1,1]{0}"}, .opset = 7},
    {.name = "no classes", .in = {"f32[2,0]"}, .error = OT_ERR_INVALID},
    {.name = "nothing is possible", .in = {"f32[1,2]{-inf,-inf}"}, .error = OT_ERR_INVALID},
    {.name = "NaN", .in = {"f32[1,2]{0,nan}"}, .error = OT_ERR_INVALID},
    {.name = "infinity", .in = {"f32[1,2]{0,inf}"}, .error = OT_ERR_INVALID},
    {.name = "fewer than no samples",
     .in = {"f32[1,2]"},
     .attrs = "sample_size = -1",
     .error = OT_ERR_INVALID},
    {.name = "floats", .in = {"f32[1,2]"}, .attrs = "dtype = 1", .error = OT_ERR_INVALID},
    {.name = "one axis", .in = {"f32[2]"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Multinomial", 22, multinomial_cases)
