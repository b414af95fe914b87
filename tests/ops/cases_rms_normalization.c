// SPDX-License-Identifier: Apache-2.0
// Values: the formula in f64.
#include "harness.h"

#define X "{1,4,1,-4,-4,-3,3,2,-2,0,1,-2,0,-2,0,3,3,-3,3,-4,2,3,2,-3}"

static const ot_op_case rms_normalization_cases[] = {
    {.name = "last axis",
     .in = {"f32[2,3,4]" X, "f32[4]{1,2,-0.5,3}"},
     .out = {"f32[2,3,4]{0.342997,2.743976,-0.1714985,-4.115964,-1.297771,-1.946656,-0.486664,1."
             "946656,-1.33333,0,-0.3333326,-3.999991,0,-2.218797,0,4.992294,0.914991,-1.829982,-0."
             "4574955,-3.659964,0.7844639,2.353392,-0.392232,-3.530088}"}},
    {.name = "two axes, one scale for the last",
     .in = {"f32[2,3,4]" X, "f32[4]{1,2,-0.5,3}"},
     .attrs = "axis = -2, epsilon = 0.25",
     .out = {"f32[2,3,4]{0.3779645,3.023716,-0.1889822,-4.535574,-1.511858,-2.267787,-0.5669467,2."
             "267787,-0.7559289,0,-0.1889822,-2.267787,0,-1.502938,0,3.381611,1.127204,-2.254407,-"
             "0.5636019,-4.508815,0.7514691,2.254407,-0.3757346,-3.381611}"}},
    {.name = "two axes, one scale for the first",
     .in = {"f32[2,3,4]" X, "f32[3,1]{1,2,-3}"},
     .attrs = "axis = 1",
     .out = {"f32[2,3,4]{0.3848999,1.5396,0.3848999,-1.5396,-3.079199,-2.309399,2.309399,1.5396,2."
             "309399,0,-1.1547,2.309399,0,-0.7650915,0,1.147637,2.295274,-2.295274,2.295274,-3."
             "060366,-2.295274,-3.442912,-2.295274,3.442912}"}},
    {.name = "scales of other axes, too",
     .in = {"f32[2,3,4]" X, "f32[2,1,4]{1,2,-0.5,3,0,1,2,-1}"},
     .out = {"f32[2,3,4]{0.342997,2.743976,-0.1714985,-4.115964,-1.297771,-1.946656,-0.486664,1."
             "946656,-1.33333,0,-0.3333326,-3.999991,0,-1.109399,0,-1.664098,0,-0.914991,1.829982,"
             "1.219988,0,1.176696,1.568928,1.176696}"}},
    {.name = "one scale", .in = {"f32[2,3,4]", "f32[1]"}, .flags = OT_CASE_OPEN},
    {.name = "scalar scale, all axes",
     .in = {"f32[2,3]", "f32[]"},
     .attrs = "axis = -2, stash_type = 1",
     .out = {"f32[2,3]"},
     .flags = OT_CASE_OPEN},
    {.name = "any sizes", .in = {"f32[2,3,4]", "f32[4]"}, .flags = OT_CASE_OPEN},
    {.name = "any sizes, two axes",
     .in = {"f32[2,3,4]", "f32[3,4]"},
     .attrs = "axis = 1",
     .flags = OT_CASE_OPEN},
    {.name = "computed in f64",
     .in = {"f32[2,4]", "f32[4]"},
     .attrs = "stash_type = 11",
     .out = {"f32[2,4]"},
     .flags = OT_CASE_OPEN},
    {.name = "the result has the scale's type", .in = {"f64[2,4]", "f32[4]"}, .out = {"f32[2,4]"}},
    {.name = "axes of size 1", .in = {"f32[2,1]", "f32[1]"}, .out = {"f32[2,1]"}},
    {.name = "no rows", .in = {"f32[0,4]", "f32[4]"}, .out = {"f32[0,4]"}},
    {.name = "many rows", .in = {"f32[70,601]", "f32[601]"}, .flags = OT_CASE_NO_GRAD},
    {.name = "axis beyond X",
     .in = {"f32[2,4]", "f32[4]"},
     .attrs = "axis = 2",
     .error = OT_ERR_INVALID},
    {.name = "scale of another size", .in = {"f32[2,4]", "f32[3]"}, .error = OT_ERR_INVALID},
    {.name = "X is not stretched", .in = {"f32[2,1]", "f32[3]"}, .error = OT_ERR_INVALID},
    {.name = "scale of more axes", .in = {"f32[4]", "f32[2,4]"}, .error = OT_ERR_INVALID},
    {.name = "unknown stash_type",
     .in = {"f32[2,4]", "f32[4]"},
     .attrs = "stash_type = 6",
     .error = OT_ERR_INVALID},
    {.name = "integers", .in = {"i32[2,4]", "f32[4]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("RMSNormalization", 23, rms_normalization_cases)
