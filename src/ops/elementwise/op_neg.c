// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void neg_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->neg(y, x, n, attrs);
}

// Y = -X:  dX = -dY
static void neg_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit1(g, "Neg", ot_grad_dy(g, 0)));
}

static const ot_tile neg_tile = {.f32 = neg_f32,
                                 .f64 = ot__ref_neg_f64,
                                 .i32 = ot__ref_neg_i32,
                                 .i64 = ot__ref_neg_i64,
                                 .rounds_once = true};
const ot_op_def ot__op_neg[] = {
    {.name = "Neg",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &neg_tile,
     .grad = neg_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
