// SPDX-License-Identifier: Apache-2.0
// Values: numpy.
#include "harness.h"

static const ot_op_case global_max_pool_cases[] = {
    {.name = "two axes",
     .in = {"f32[2,3,3,2]{21,28,-1,9,4,2,29,0,10,15,11,-2,20,17,19,3,8,31,18,27,16,1,24,7,30,32,5,"
            "23,14,13,26,22,25,-3,12,6}"},
     .out = {"f32[2,3,1,1]{28,29,31,27,32,26}"}},
    {.name = "one axis",
     .in = {"f32[2,2,5]{0,3,4,2,13,12,-1,1,6,7,15,8,11,-3,9,10,16,14,5,-2}"},
     .out = {"f32[2,2,1]{13,12,15,16}"}},
    {.name = "three axes",
     .in = {"f32[1,2,2,3,2]{2,-2,4,-1,8,9,18,10,11,0,19,3,15,7,17,20,5,16,13,14,-3,12,1,6}"},
     .out = {"f32[1,2,1,1,1]{19,20}"}},
    {.name = "one element",
     .in = {"f32[2,3,1,1]{0,2,-3,-1,-2,1}"},
     .out = {"f32[2,3,1,1]{0,2,-3,-1,-2,1}"}},
    {.name = "many planes", .in = {"f32[9,40,7,7]"}, .out = {"f32[9,40,1,1]"}},
    {.name = "opset 7", .in = {"f64[2,3,3,2]"}, .out = {"f64[2,3,1,1]"}, .opset = 7},
    {.name = "empty batch", .in = {"f32[0,3,3,2]"}, .out = {"f32[0,3,1,1]"}},
    {.name = "no elements", .in = {"f32[2,3,0,2]"}, .error = OT_ERR_INVALID},
    {.name = "no spatial axes", .in = {"f32[2,3]"}, .error = OT_ERR_INVALID},
    {.name = "equal maxima",
     .in = {"f32[1,1,2,2]{1,3,3,0}"},
     .out = {"f32[1,1,1,1]{3}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "f16",
     .in = {"f16[1,2,1,2]{1,3,-2,-0.5}"},
     .out = {"f16[1,2,1,1]{3,-0.5}"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "bf16",
     .in = {"bf16[1,2,1,2]{1,3,-2,-0.5}"},
     .out = {"bf16[1,2,1,1]{3,-0.5}"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("GlobalMaxPool", 22, global_max_pool_cases)
