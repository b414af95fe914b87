// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

static const ot_op_case affine_grid_cases[] = {
#include "affine_grid_recorded.h"
    {.name = "several threads",
     .in = {"f32[2,2,3]", "i64[4]{2,1,96,97} const"},
     .out = {"f32[2,96,97,2]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "an axis that is not written down",
     .in = {"f32[1,2,3]", "i64[4]{1,1,1,70000} const"},
     .out = {"f32[1,1,70000,2]"},
     .flags = OT_CASE_NO_GRAD},
    {.name = "no positions",
     .in = {"f32[1,2,3]", "i64[4]{1,1,0,2} const"},
     .out = {"f32[1,0,2,2]"}},
    {.name = "no batch", .in = {"f32[0,2,3]", "i64[4]{0,1,3,2} const"}, .out = {"f32[0,3,2,2]"}},
    {.name = "one axis", .in = {"f32[1,1,2]", "i64[3]{1,1,3} const"}, .error = OT_ERR_INVALID},
    {.name = "rows without a shift",
     .in = {"f32[1,2,2]", "i64[4]{1,1,3,2} const"},
     .error = OT_ERR_INVALID},
    {.name = "theta of two axes",
     .in = {"f32[2,3]", "i64[4]{1,1,3,2} const"},
     .error = OT_ERR_INVALID},
    {.name = "a size for other axes",
     .in = {"f32[1,2,3]", "i64[5]{1,1,3,2,2} const"},
     .error = OT_ERR_INVALID},
    {.name = "another batch size",
     .in = {"f32[1,2,3]", "i64[4]{2,1,3,2} const"},
     .error = OT_ERR_INVALID},
    {.name = "a negative size",
     .in = {"f32[1,2,3]", "i64[4]{1,1,-3,2} const"},
     .error = OT_ERR_INVALID},
    {0},
};
OT_OP_TEST("AffineGrid", 20, affine_grid_cases)
