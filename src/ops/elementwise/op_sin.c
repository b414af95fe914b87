// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

// Y = sin(X):  dX = dY * cos(X)
static void sin_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", dy, ot_emit1(g, "Cos", x)));
}

static const ot_tile sin_tile = {.f64 = ot__ref_sin_f64};
const ot_op_def ot__op_sin[] = {
    {.name = "Sin",
     .since = 7,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &sin_tile,
     .grad = sin_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
