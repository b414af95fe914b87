// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

#define TWO_BY_SQRT_PI 1.12837916709551257390

static void erf_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->erf(y, x, n, attrs);
}

// Y = erf(X):  dX = dY * 2 / sqrt(pi) * exp(-X * X)
static void erf_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *bell = ot_emit1(g, "Exp", ot_emit1(g, "Neg", ot_emit2(g, "Mul", x, x)));
    ot_value *slope = ot_emit2(g, "Mul", bell, ot_emit_constant(g, TWO_BY_SQRT_PI, x));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", dy, slope));
}

static const ot_tile erf_tile = {.f32 = erf_f32, .f64 = ot__ref_erf_f64};
const ot_op_def ot__op_erf[] = {
    {.name = "Erf",
     .since = 9,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &erf_tile,
     .grad = erf_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
