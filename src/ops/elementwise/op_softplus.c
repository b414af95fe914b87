// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void softplus_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->softplus(y, x, n, attrs);
}

// Y = log(1 + exp(X)):  dX = dY * Sigmoid(X)
static void softplus_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", dy, ot_emit1(g, "Sigmoid", x)));
}

static const ot_tile softplus_tile = {.f32 = softplus_f32, .f64 = ot__ref_softplus_f64};
const ot_op_def ot__op_softplus[] = {
    {.name = "Softplus",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &softplus_tile,
     .grad = softplus_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
