// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case flatten_cases[] = {
    {.name = "default",
     .in = {"f32[2,3,2]{1,2,3,4,5,6,7,8,9,10,11,12}"},
     .out = {"f32[2,6]{1,2,3,4,5,6,7,8,9,10,11,12}"}},
    {.name = "axis 0",
     .in = {"f32[2,3]{1,2,3,4,5,6}"},
     .attrs = "axis = 0",
     .out = {"f32[1,6]{1,2,3,4,5,6}"}},
    {.name = "all axes before",
     .in = {"f32[2,3]{1,2,3,4,5,6}"},
     .attrs = "axis = 2",
     .out = {"f32[6,1]{1,2,3,4,5,6}"}},
    {.name = "negative axis",
     .in = {"f32[2,3,2]{1,2,3,4,5,6,7,8,9,10,11,12}"},
     .attrs = "axis = -1",
     .out = {"f32[6,2]{1,2,3,4,5,6,7,8,9,10,11,12}"}},
    {.name = "a vector",
     .in = {"f32[4]{1,2,3,4}"},
     .attrs = "axis = 1",
     .out = {"f32[4,1]{1,2,3,4}"}},
    {.name = "a scalar", .in = {"f32[]"}, .attrs = "axis = 0", .out = {"f32[1,1]"}},
    {.name = "empty", .in = {"f32[0,3,4]"}, .out = {"f32[0,12]"}},
    {.name = "opset 7",
     .in = {"f32[2,2,2]{1,2,3,4,5,6,7,8}"},
     .out = {"f32[2,4]{1,2,3,4,5,6,7,8}"},
     .opset = 9},
    {.name = "axis out of range", .in = {"f32[2,3]"}, .attrs = "axis = 3", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("Flatten", 13, flatten_cases)
