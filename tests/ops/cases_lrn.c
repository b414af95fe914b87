// SPDX-License-Identifier: Apache-2.0
// Values: the formula in f64.
#include "harness.h"

#define X "f32[1,5,2,2]{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4}"

static const ot_op_case lrn_cases[] = {
    {.name = "usual",
     .in = {X},
     .attrs = "size = 3",
     .out = {"f32[1,5,2,2]{0.9995752,3.997502,0.9997501,-3.998001,-3.997901,-2.998126,2.999175,1."
             "998801,-1.999001,0,0.9997501,-1.99915,0,-1.99935,0,2.997827,2.999325,-2.999025,2."
             "999325,-3.997502}"}},
    {.name = "an even size reaches farther behind",
     .in = {X},
     .attrs = "size = 4, alpha = 0.5, beta = 0.6, bias = 2.0",
     .out = {"f32[1,5,2,2]{0.3989633,1.500526,0.4819875,-1.522923,-1.595853,-1.06426,1.445962,0."
             "6741652,-0.7095067,0,0.4124898,-0.6741652,0,-0.9235176,0,1.06426,1.514298,-1.385276,"
             "1.514298,-1.500526}"}},
    {.name = "more than there are channels",
     .in = {X},
     .attrs = "size = 9, alpha = 0.5, bias = 2.0",
     .out = {"f32[1,5,2,2]{0.3773952,1.385449,0.4268874,-1.248677,-1.509581,-1.039087,1.280662,0."
             "6243386,-0.7547905,0,0.4268874,-0.6243386,0,-0.6927246,0,0.9365079,1.132186,-1."
             "039087,1.280662,-1.248677}"}},
    {.name = "itself alone",
     .in = {"f32[2,3,5]"},
     .attrs = "size = 1, alpha = 0.7",
     .out = {"f32[2,3,5]"},
     .flags = OT_CASE_IMAGE},
    {.name = "two before and behind",
     .in = {"f32[2,7,3,4]"},
     .attrs = "size = 5, alpha = 0.9, beta = 0.75",
     .flags = OT_CASE_IMAGE},
    {.name = "even, no spatial axes",
     .in = {"f32[3,6]"},
     .attrs = "size = 2, alpha = 0.5, beta = 1.5",
     .out = {"f32[3,6]"}},
    {.name = "opset 7, three spatial axes",
     .in = {"f64[2,3,2,1,3]"},
     .attrs = "size = 3, alpha = 0.5",
     .out = {"f64[2,3,2,1,3]"},
     .opset = 7},
    {.name = "places around those worked on at once",
     .in = {"f32[2,5,67]"},
     .attrs = "size = 3, alpha = 0.5",
     .flags = OT_CASE_NO_GRAD},
    {.name = "large", .in = {"f32[3,20,30,31]"}, .attrs = "size = 5", .flags = OT_CASE_NO_GRAD},
    {.name = "a size without end",
     .in = {"f32[1,3,2]"},
     .attrs = "size = 9223372036854775807, alpha = 1.0",
     .out = {"f32[1,3,2]"}},
    {.name = "no images", .in = {"f32[0,3,2]"}, .attrs = "size = 3", .out = {"f32[0,3,2]"}},
    {.name = "no channels", .in = {"f32[2,0,2]"}, .attrs = "size = 3", .out = {"f32[2,0,2]"}},
    {.name = "size 0", .in = {"f32[2,3,2]"}, .attrs = "size = 0", .error = OT_ERR_INVALID},
    {.name = "size is missing", .in = {"f32[2,3,2]"}, .error = OT_ERR_INVALID},
    {.name = "one axis", .in = {"f32[3]"}, .attrs = "size = 3", .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("LRN", 13, lrn_cases)
