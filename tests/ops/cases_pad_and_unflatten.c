// SPDX-License-Identifier: Apache-2.0
// Values by the definition.
#include "harness.h"

static const ot_op_case pad_and_unflatten_cases[] = {
    {.name = "rows to their places",
     .in = {"f32[3,2]{1,2,3,4,5,6}", "i64[3]{0,5,4}", "i64[2]{2,3} const"},
     .out = {"f32[2,3,2]{1,2,0,0,0,0,0,0,5,6,3,4}"}},
    {.name = "one axis, integers",
     .in = {"i32[2]{7,8}", "i32[2]{3,1}", "i32[2]{2,3} const"},
     .out = {"i32[2,3]{0,8,0,7,0,0}"}},
    {.name = "random",
     .in = {"f32[5,2,3]", "i64[5]{11,2,3,0,7}", "i64[2]{3,4} const"},
     .out = {"f32[3,4,2,3]"}},
    {.name = "no rows",
     .in = {"f32[0,2]", "i64[0]", "i64[2]{1,2} const"},
     .out = {"f32[1,2,2]{0,0,0,0}"}},
    {.name = "an index too high",
     .in = {"f32[1,2]", "i64[1]{6}", "i64[2]{2,3} const"},
     .error = OT_ERR_INVALID},
    {.name = "an index short",
     .in = {"f32[2,2]", "i64[1]{0}", "i64[2]{2,3} const"},
     .error = OT_ERR_INVALID},
    {.name = "three extents",
     .in = {"f32[1,2]", "i64[1]{0}", "i64[3]{2,3,1} const"},
     .error = OT_ERR_INVALID},
    {.name = "a negative extent",
     .in = {"f32[1,2]", "i64[1]{0}", "i64[2]{-2,3} const"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.PadAndUnflatten", 1, pad_and_unflatten_cases)
