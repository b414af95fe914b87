// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void tanh_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->tanh(y, x, n, attrs);
}

// Y = tanh(X):  dX = dY * (1 - Y * Y)
static void tanh_grad(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "com.microsoft.TanhGrad", dy, y));
}

static const ot_tile tanh_tile = {.f32 = tanh_f32, .f64 = ot__ref_tanh_f64};
const ot_op_def ot__op_tanh[] = {
    {.name = "Tanh",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &tanh_tile,
     .grad = tanh_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
