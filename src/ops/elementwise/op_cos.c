// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

// Y = cos(X):  dX = dY * -sin(X)
static void cos_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", dy, ot_emit1(g, "Neg", ot_emit1(g, "Sin", x))));
}

static const ot_tile cos_tile = {.f64 = ot__ref_cos_f64};
const ot_op_def ot__op_cos[] = {
    {.name = "Cos",
     .since = 7,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &cos_tile,
     .grad = cos_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
