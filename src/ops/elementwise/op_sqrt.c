// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void sqrt_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->sqrt(y, x, n, attrs);
}

// Y = sqrt(X):  dX = dY * (0.5 / Y)
static void sqrt_grad(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0,
                   ot_emit2(g, "Mul", dy, ot_emit2(g, "Div", ot_emit_constant(g, 0.5, y), y)));
}

static const ot_tile sqrt_tile = {.f32 = sqrt_f32, .f64 = ot__ref_sqrt_f64};
const ot_op_def ot__op_sqrt[] = {
    {.name = "Sqrt",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &sqrt_tile,
     .grad = sqrt_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
