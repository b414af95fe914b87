// SPDX-License-Identifier: Apache-2.0
// What operators of two broadcast operands have in common; their values stand in their own tables.
#include "harness.h"

static const ot_op_case arithmetic_cases[] = {
    {.name = "same shape", .in = {"f32[2,3]", "f32[2,3]"}, .out = {"f32[2,3]"}},
    {.name = "row", .in = {"f32[4,3]", "f32[3]"}, .out = {"f32[4,3]"}},
    {.name = "column and row", .in = {"f32[4,1]", "f32[1,3]"}, .out = {"f32[4,3]"}},
    {.name = "scalar right", .in = {"f32[2,5]", "f32[]"}, .out = {"f32[2,5]"}},
    {.name = "scalar left", .in = {"f32[]", "f32[2,5]"}, .out = {"f32[2,5]"}},
    {.name = "middle axis", .in = {"f32[2,3,1,4]", "f32[3,5,1]"}, .out = {"f32[2,3,5,4]"}},
    {.name = "more axes right", .in = {"f32[3]", "f32[2,2,3]"}, .out = {"f32[2,2,3]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[601]"},
     .out = {"f32[70,601]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "large, column",
     .in = {"f32[70,601]", "f32[70,1]"},
     .out = {"f32[70,601]"},
     .flags = OT_CASE_NO_GRAD},
    // Also in the layouts of images.
    {.name = "channels of images",
     .in = {"f32[2,16,3,5]", "f32[2,16,1,1]"},
     .out = {"f32[2,16,3,5]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "channels of all images left",
     .in = {"f32[24,1]", "f32[3,24,70]"},
     .out = {"f32[3,24,70]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "many channels",
     .in = {"f32[2,304,3,2]", "f32[1,304,1,1]"},
     .out = {"f32[2,304,3,2]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "points of images",
     .in = {"f32[2,8,3,2,4]", "f32[2,1,3,2,4]"},
     .out = {"f32[2,8,3,2,4]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "channels of columns of images",
     .in = {"f32[2,16,3,5]", "f32[16,1,5]"},
     .out = {"f32[2,16,3,5]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "empty", .in = {"f32[0,3]", "f32[3]"}, .out = {"f32[0,3]"}},
    {.name = "opset 7", .in = {"f32[2,3]", "f32[3]"}, .out = {"f32[2,3]"}, .opset = 7},
    {.name = "shapes do not fit", .in = {"f32[2,3]", "f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "types differ", .in = {"f32[2]", "i32[2]"}, .error = OT_ERR_INVALID},
    {0},
};

static const ot_op_case comparison_cases[] = {
    {.name = "same shape", .in = {"f32[2,3]", "f32[2,3]"}, .out = {"bool[2,3]"}},
    {.name = "row", .in = {"f32[4,3]", "f32[3]"}, .out = {"bool[4,3]"}},
    {.name = "column and row", .in = {"f32[4,1]", "f32[1,3]"}, .out = {"bool[4,3]"}},
    {.name = "scalar right", .in = {"f32[2,5]", "f32[]"}, .out = {"bool[2,5]"}},
    {.name = "scalar left", .in = {"f32[]", "f32[2,5]"}, .out = {"bool[2,5]"}},
    {.name = "middle axis", .in = {"f32[2,3,1,4]", "f32[3,5,1]"}, .out = {"bool[2,3,5,4]"}},
    {.name = "more axes right", .in = {"f32[3]", "f32[2,2,3]"}, .out = {"bool[2,2,3]"}},
    {.name = "large",
     .in = {"f32[70,601]", "f32[601]"},
     .out = {"bool[70,601]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "large, column",
     .in = {"f32[70,601]", "f32[70,1]"},
     .out = {"bool[70,601]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "empty", .in = {"f32[0,3]", "f32[3]"}, .out = {"bool[0,3]"}},
    {.name = "shapes do not fit", .in = {"f32[2,3]", "f32[2]"}, .error = OT_ERR_INVALID},
    {.name = "types differ", .in = {"f32[2]", "i32[2]"}, .error = OT_ERR_INVALID},
    {0},
};

OT_OP_TEST_SHARED("Add", 13, arithmetic_cases, add)
OT_OP_TEST_SHARED("Sub", 13, arithmetic_cases, sub)
OT_OP_TEST_SHARED("Mul", 13, arithmetic_cases, mul)
OT_OP_TEST_SHARED("Max", 13, arithmetic_cases, max)
OT_OP_TEST_SHARED("Min", 13, arithmetic_cases, min)
OT_OP_TEST_SHARED("Equal", 13, comparison_cases, equal)
OT_OP_TEST_SHARED("Greater", 13, comparison_cases, greater)
OT_OP_TEST_SHARED("GreaterOrEqual", 16, comparison_cases, greater_or_equal)
OT_OP_TEST_SHARED("Less", 13, comparison_cases, less)
OT_OP_TEST_SHARED("LessOrEqual", 16, comparison_cases, less_or_equal)
