// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void exp_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->exp(y, x, n, attrs);
}

// Y = exp(X):  dX = dY * Y
static void exp_grad(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", dy, y));
}

static const ot_tile exp_tile = {.f32 = exp_f32, .f64 = ot__ref_exp_f64};
const ot_op_def ot__op_exp[] = {
    {.name = "Exp",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &exp_tile,
     .grad = exp_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
