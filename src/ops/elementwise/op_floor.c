// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void floor_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->floor(y, x, n, attrs);
}

static const ot_tile floor_tile = {.f32 = floor_f32, .f64 = ot__ref_floor_f64};
const ot_op_def ot__op_floor[] = {
    {.name = "Floor",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &floor_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
