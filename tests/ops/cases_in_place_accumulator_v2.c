// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case in_place_accumulator_v2_cases[] = {
    {.name = "adds",
     .in = {"f32[2]{1,2}", "f32[2]{10,20}"},
     .out = {"bool[1]{1}", "f32[2]{11,22}"}},
    {.name = "overwrites",
     .in = {"f32[2]{1,2}", "f32[2]{10,20}", "bool[1]{1}"},
     .out = {"bool[1]{1}", "f32[2]{10,20}"}},
    {.name = "does not overwrite",
     .in = {"f32[2]{1,2}", "f32[2]{10,20}", "bool[1]{0}"},
     .out = {"bool[1]{1}", "f32[2]{11,22}"}},
    {.name = "images, adds",
     .in = {"f32[2,16,3,2]", "f32[2,16,3,2]", "bool[1]{0}"},
     .out = {"bool[1]{1}", "f32[2,16,3,2]"}},
    {.name = "images, overwrites",
     .in = {"f32[2,16,3,2]", "f32[2,16,3,2]", "bool[1]{1}"},
     .out = {"bool[1]{1}", "f32[2,16,3,2]"}},
    {.name = "only the flag", .in = {"f64[2,3]", "f64[2,3]"}, .out = {"bool[1]{1}"}},
    {.name = "shapes differ", .in = {"f32[2]", "f32[3]"}, .error = OT_ERR_INVALID},
    {.name = "i32", .in = {"i32[2]", "i32[2]"}, .error = OT_ERR_UNSUPPORTED},
    {0},
};
OT_OP_TEST("com.microsoft.InPlaceAccumulatorV2", 1, in_place_accumulator_v2_cases)
