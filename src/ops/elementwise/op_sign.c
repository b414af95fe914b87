// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void sign_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->sign(y, x, n, attrs);
}

static const ot_tile sign_tile = {
    .f32 = sign_f32, .f64 = ot__ref_sign_f64, .i32 = ot__ref_sign_i32, .i64 = ot__ref_sign_i64};
const ot_op_def ot__op_sign[] = {
    {.name = "Sign",
     .since = 9,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &sign_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
