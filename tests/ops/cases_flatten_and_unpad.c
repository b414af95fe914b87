// SPDX-License-Identifier: Apache-2.0
// Values by the definition.
#include "harness.h"

static const ot_op_case flatten_and_unpad_cases[] = {
    {.name = "rows of two axes as one",
     .in = {"f32[2,3,2]{1,2,3,4,5,6,7,8,9,10,11,12}", "i64[3]{0,5,4}"},
     .out = {"f32[3,2]{1,2,11,12,9,10}", "i64[2]{2,3}"}},
    {.name = "two axes alone, integers",
     .in = {"i64[2,3]{1,2,3,4,5,6}", "i32[2]{3,1}"},
     .out = {"i64[2]{4,2}", "i32[2]{2,3}"}},
    {.name = "random", .in = {"f32[3,4,2,3]", "i64[5]{11,2,3,0,7}"}, .out = {"f32[5,2,3]"}},
    {.name = "no rows", .in = {"f32[2,3,2]", "i64[0]"}, .out = {"f32[0,2]", "i64[2]{2,3}"}},
    {.name = "an index too high", .in = {"f32[2,3,2]", "i64[1]{6}"}, .error = OT_ERR_INVALID},
    {.name = "a negative index", .in = {"f32[2,3,2]", "i64[1]{-1}"}, .error = OT_ERR_INVALID},
    {.name = "one axis", .in = {"f32[6]", "i64[1]{0}"}, .error = OT_ERR_INVALID},
    {.name = "indices of two axes", .in = {"f32[2,3]", "i64[1,1]{0}"}, .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("com.microsoft.FlattenAndUnpad", 1, flatten_and_unpad_cases)
