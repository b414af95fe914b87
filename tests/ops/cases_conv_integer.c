// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "recorded_onnxruntime.h"

static const ot_op_case conv_integer_cases[] = {
    RECORDED_CONV_INTEGER,
    {.name = "zero points of channels", // of ones: 4 - 1 and (4 - 1) * -1
     .in = {"u8[1,1,1,2]{4,5}", "i8[2,1,1,1]{2,1}", "u8[]{1}", "i8[2]{1,2}"},
     .out = {"i32[1,2,1,2]{3,4,-3,-4}"}},
    {.name = "zero points of channels of groups",
     .in = {"u8[1,2,1,1]{4,5}", "i8[2,1,1,1]{2,1}", "", "i8[2]{1,2}"},
     .attrs = "group = 2",
     .out = {"i32[1,2,1,1]{4,-5}"}},
    {.name = "no images", .in = {"u8[0,2,5,5]", "u8[3,2,3,3]"}, .out = {"i32[0,3,3,3]"}},
    {.name = "large", .in = {"u8[2,8,20,20]", "i8[24,8,3,3]", "u8[]", "i8[24]"}},
    {.name = "zero points of other channels",
     .in = {"u8[1,2,5,5]", "u8[3,2,3,3]", "u8[]", "u8[2]"},
     .error = OT_ERR_INVALID},
    {.name = "two zero points of X",
     .in = {"u8[1,2,5,5]", "u8[3,2,3,3]", "u8[2]"},
     .error = OT_ERR_INVALID},
    {.name = "other channels", .in = {"u8[1,3,5,5]", "u8[3,2,3,3]"}, .error = OT_ERR_INVALID},
    {.name = "two axes", .in = {"u8[5,5]", "u8[3,3]"}, .error = OT_ERR_INVALID},
    {.name = "an absurd stride",
     .in = {"u8[1,2,5,5]", "u8[3,2,3,3]"},
     .attrs = "strides = [1, 9223372036854775807]",
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("ConvInteger", 10, conv_integer_cases)
