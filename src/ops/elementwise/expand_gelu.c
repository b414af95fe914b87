// SPDX-License-Identifier: Apache-2.0
// The slopes of the GELU family in ONNX's operators.
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static const double sqrt_half = 0.70710678118654752440, inv_sqrt_2pi = 0.39894228040143267794;
static const double sqrt_2_by_pi = 0.79788456080286535588, cubic = 0.044715;

// (1 + erf(x / sqrt(2))) / 2 + x * exp(-x^2 / 2) / sqrt(2 pi)
ot_value *ot__emit_gelu_slope(ot_grad *g, ot_value *x)
{
    ot_value *erf = ot_emit1(g, "Erf", ot__emit_times(g, x, sqrt_half));
    ot_value *below = ot__emit_times(
        g, x == NULL ? NULL : ot_emit2(g, "Add", erf, ot_emit_constant(g, 1.0, x)), 0.5);
    ot_value *bell = ot_emit1(g, "Exp", ot__emit_times(g, ot_emit2(g, "Mul", x, x), -0.5));

    return ot_emit2(g, "Add", below, ot_emit2(g, "Mul", x, ot__emit_times(g, bell, inv_sqrt_2pi)));
}

// (1 + t + x * (1 - t^2) * c * (1 + 3 * k * x^2)) / 2 with t = tanh(c * (x + k * x^3))
ot_value *ot__emit_fast_gelu_slope(ot_grad *g, ot_value *x)
{
    ot_value *one = x == NULL ? NULL : ot_emit_constant(g, 1.0, x);
    ot_value *square = ot_emit2(g, "Mul", x, x);
    ot_value *cube = ot__emit_times(g, ot_emit2(g, "Mul", square, x), cubic);
    ot_value *t = ot_emit1(g, "Tanh", ot__emit_times(g, ot_emit2(g, "Add", x, cube), sqrt_2_by_pi));
    ot_value *inner = ot__emit_times(
        g, ot_emit2(g, "Add", one, ot__emit_times(g, square, 3 * cubic)), sqrt_2_by_pi);
    ot_value *steep = ot_emit2(g, "Sub", one, ot_emit2(g, "Mul", t, t));
    ot_value *rest = ot_emit2(g, "Mul", ot_emit2(g, "Mul", x, steep), inner);

    return ot__emit_times(g, ot_emit2(g, "Add", ot_emit2(g, "Add", one, t), rest), 0.5);
}
