// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the integer types besides i32 and i64, which wraps around. Values: C's arithmetic
// of the type; ONNX's test_mod_* for signs of remainders.
#include "harness.h"

static const ot_op_case add_integer_cases[] = {
    {.name = "i8", .in = {"i8[3]{127,-128,5}", "i8[3]{1,-1,-7}"}, .out = {"i8[3]{-128,127,-2}"}},
    {.name = "i16", .in = {"i16[2]{32767,-5}", "i16[]{2}"}, .out = {"i16[2]{-32767,-3}"}},
    {.name = "u8", .in = {"u8[2,1]{255,7}", "u8[2]{1,3}"}, .out = {"u8[2,2]{0,2,8,10}"}},
    {.name = "u16", .in = {"u16[2]{65535,7}", "u16[2]{3,3}"}, .out = {"u16[2]{2,10}"}},
    {.name = "u32", .in = {"u32[2]{4294967295,7}", "u32[2]{3,3}"}, .out = {"u32[2]{2,10}"}},
    {.name = "u64",
     .in = {"u64[2]{9223372036854775808,7}", "u64[2]{9223372036854775808,3}"},
     .out = {"u64[2]{0,10}"}},
    {.name = "several threads", .in = {"i8[70,1000]", "i8[1000]"}, .out = {"i8[70,1000]"}},
    {.name = "empty", .in = {"u16[0,3]", "u16[3]"}, .out = {"u16[0,3]"}},
    {.name = "images", .in = {"u8[2,16,3,3]", "u8[2,16,3,3]"}, .out = {"u8[2,16,3,3]"}},
    {0},
};
OT_OP_TEST("Add", 14, add_integer_cases)

static const ot_op_case sub_integer_cases[] = {
    {.name = "i8", .in = {"i8[2]{-128,5}", "i8[2]{1,7}"}, .out = {"i8[2]{127,-2}"}},
    {.name = "i16", .in = {"i16[2]{-32768,5}", "i16[2]{1,7}"}, .out = {"i16[2]{32767,-2}"}},
    {.name = "u8", .in = {"u8[2]{0,7}", "u8[2]{1,3}"}, .out = {"u8[2]{255,4}"}},
    {.name = "u16", .in = {"u16[2]{0,7}", "u16[2]{1,3}"}, .out = {"u16[2]{65535,4}"}},
    {.name = "u32", .in = {"u32[2]{0,7}", "u32[2]{1,3}"}, .out = {"u32[2]{4294967295,4}"}},
    {.name = "u64", .in = {"u64[2]{7,4}", "u64[2]{3,4}"}, .out = {"u64[2]{4,0}"}},
    {0},
};
OT_OP_TEST("Sub", 14, sub_integer_cases)

static const ot_op_case mul_integer_cases[] = {
    {.name = "i8", .in = {"i8[2]{-128,5}", "i8[2]{-1,7}"}, .out = {"i8[2]{-128,35}"}},
    {.name = "i16", .in = {"i16[2]{300,-5}", "i16[2]{300,7}"}, .out = {"i16[2]{24464,-35}"}},
    {.name = "u8", .in = {"u8[2]{255,7}", "u8[2]{255,3}"}, .out = {"u8[2]{1,21}"}},
    {.name = "u16", .in = {"u16[2]{65535,7}", "u16[2]{65535,3}"}, .out = {"u16[2]{1,21}"}},
    {.name = "u32",
     .in = {"u32[2]{4294967295,7}", "u32[2]{4294967295,3}"},
     .out = {"u32[2]{1,21}"}},
    {.name = "u64",
     .in = {"u64[2]{9223372036854775808,7}", "u64[2]{3,3}"},
     .out = {"u64[2]{9223372036854775808,21}"}},
    {0},
};
OT_OP_TEST("Mul", 14, mul_integer_cases)

static const ot_op_case div_integer_cases[] = {
    {.name = "i8", .in = {"i8[3]{-128,-7,7}", "i8[3]{-1,2,-2}"}, .out = {"i8[3]{-128,-3,-3}"}},
    {.name = "i16", .in = {"i16[2]{-32768,-7}", "i16[2]{-1,2}"}, .out = {"i16[2]{-32768,-3}"}},
    {.name = "u8", .in = {"u8[2]{255,7}", "u8[2]{2,3}"}, .out = {"u8[2]{127,2}"}},
    {.name = "u16", .in = {"u16[2]{65535,7}", "u16[2]{2,3}"}, .out = {"u16[2]{32767,2}"}},
    {.name = "u32", .in = {"u32[2]{4294967295,7}", "u32[2]{2,3}"}, .out = {"u32[2]{2147483647,2}"}},
    {.name = "u64",
     .in = {"u64[2]{9223372036854775808,7}", "u64[2]{2,3}"},
     .out = {"u64[2]{4611686018427387904,2}"}},
    {.name = "by zero, i8", .in = {"i8[2]{1,2}", "i8[2]{1,0}"}, .error = OT_ERR_INVALID},
    {.name = "by zero, u16", .in = {"u16[2]{1,2}", "u16[2]{1,0}"}, .error = OT_ERR_INVALID},
    {.name = "by zero, u32", .in = {"u32[2]{1,2}", "u32[2]{1,0}"}, .error = OT_ERR_INVALID},
    {.name = "by zero, u64", .in = {"u64[2]{1,2}", "u64[2]{1,0}"}, .error = OT_ERR_INVALID},
    {.name = "images, i8",
     .in = {"i8[2,16,3,3] in 0..5", "i8[2,16,3,3] in 1..5"},
     .out = {"i8[2,16,3,3]"}},
    {.name = "images, u64",
     .in = {"u64[2,16,3,3] in 0..5", "u64[2,16,3,3] in 1..5"},
     .out = {"u64[2,16,3,3]"}},
    {0},
};
OT_OP_TEST("Div", 14, div_integer_cases)

static const ot_op_case mod_integer_cases[] = {
    {.name = "i8",
     .in = {"i8[6]{-4,7,5,4,-7,8}", "i8[6]{2,-3,8,-2,3,5}"},
     .out = {"i8[6]{0,-2,5,0,2,3}"}},
    {.name = "i16, sign of the dividend",
     .in = {"i16[6]{-4,7,5,4,-7,8}", "i16[6]{2,-3,8,-2,3,5}"},
     .attrs = "fmod = 1",
     .out = {"i16[6]{0,1,5,0,-1,3}"}},
    {.name = "u8", .in = {"u8[2]{255,7}", "u8[2]{2,3}"}, .out = {"u8[2]{1,1}"}},
    {.name = "u16", .in = {"u16[2]{65535,7}", "u16[2]{2,3}"}, .out = {"u16[2]{1,1}"}},
    {.name = "u32", .in = {"u32[2]{4294967295,7}", "u32[2]{10,3}"}, .out = {"u32[2]{5,1}"}},
    {.name = "u64",
     .in = {"u64[2]{9223372036854775808,7}", "u64[2]{10,3}"},
     .out = {"u64[2]{8,1}"}},
    {.name = "u64, sign of the dividend",
     .in = {"u64[1]{9223372036854775808}", "u64[1]{10}"},
     .attrs = "fmod = 1",
     .out = {"u64[1]{8}"}},
    {.name = "by zero", .in = {"u8[2]{1,2}", "u8[2]{1,0}"}, .error = OT_ERR_INVALID},
    {.name = "images, i8",
     .in = {"i8[2,16,3,3] in 0..5", "i8[2,16,3,3] in 1..5"},
     .out = {"i8[2,16,3,3]"}},
    {.name = "images, u64",
     .in = {"u64[2,16,3,3] in 0..5", "u64[2,16,3,3] in 1..5"},
     .out = {"u64[2,16,3,3]"}},
    {0},
};
OT_OP_TEST("Mod", 13, mod_integer_cases)

static const ot_op_case pow_integer_cases[] = {
    {.name = "f32 to u64", .in = {"f32[3]{1,2,3}", "u64[3]{4,5,6}"}, .out = {"f32[3]{1,32,729}"}},
    {.name = "f32 to i8", .in = {"f32[2]{2,4}", "i8[2]{-1,3}"}, .out = {"f32[2]{0.5,64}"}},
    {.name = "i32 to u16",
     .in = {"i32[2]{-3,2}", "u16[2]{3,31}"},
     .out = {"i32[2]{-27,-2147483648}"}},
    {.name = "i64 to u8",
     .in = {"i64[2]{-2,3}", "u8[2]{63,3}"},
     .out = {"i64[2]{-9223372036854775808,27}"}},
    {.name = "i64 to i32", .in = {"i64[3]{-1,2,1}", "i32[3]{-3,-1,-5}"}, .out = {"i64[3]{-1,0,1}"}},
    {.name = "i64 to more than i64 holds",
     .in = {"i64[3]{-1,2,1}",
            "u64[3]{9223372036854775808,9223372036854775808,18446744073709549568}"},
     .out = {"i64[3]{1,0,1}"}},
    {0},
};
OT_OP_TEST("Pow", 15, pow_integer_cases)

static const ot_op_case abs_integer_cases[] = {
    {.name = "i8", .in = {"i8[3]{-128,-3,4}"}, .out = {"i8[3]{-128,3,4}"}},
    {.name = "i16", .in = {"i16[2]{-3,4}"}, .out = {"i16[2]{3,4}"}},
    {.name = "u8", .in = {"u8[2]{255,4}"}, .out = {"u8[2]{255,4}"}},
    {.name = "images, i32", .in = {"i32[2,16,3,3]"}, .out = {"i32[2,16,3,3]"}},
    {.name = "images, i64", .in = {"i64[2,16,3,3]"}, .out = {"i64[2,16,3,3]"}},
    {.name = "images, i8", .in = {"i8[2,16,3,3]"}, .out = {"i8[2,16,3,3]"}},
    {0},
};
OT_OP_TEST("Abs", 13, abs_integer_cases)

static const ot_op_case sign_integer_cases[] = {
    {.name = "i8", .in = {"i8[3]{-128,0,4}"}, .out = {"i8[3]{-1,0,1}"}},
    {.name = "u16", .in = {"u16[2]{65535,0}"}, .out = {"u16[2]{1,0}"}},
    {0},
};
OT_OP_TEST("Sign", 13, sign_integer_cases)

static const ot_op_case neg_integer_cases[] = {
    {.name = "i8", .in = {"i8[3]{-128,0,4}"}, .out = {"i8[3]{-128,0,-4}"}},
    {.name = "i16", .in = {"i16[2]{-3,4}"}, .out = {"i16[2]{3,-4}"}},
    {.name = "u8", .in = {"u8[2]{3,4}"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("Neg", 13, neg_integer_cases)

static const ot_op_case relu_integer_cases[] = {
    {.name = "i8", .in = {"i8[3]{-128,0,4}"}, .out = {"i8[3]{0,0,4}"}},
    {.name = "i16", .in = {"i16[2]{-3,4}"}, .out = {"i16[2]{0,4}"}},
    {0},
};
OT_OP_TEST("Relu", 14, relu_integer_cases)
