// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void bias_gelu_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->bias_gelu(y, x, n, attrs);
}

// Y = Gelu(X + B):  dB is dX summed over the leading axes.
static void bias_gelu_grad(ot_grad *g)
{
    ot_value *dy = ot_grad_dy(g, 0), *x = ot_grad_x(g, 0), *b = ot_grad_x(g, 1), *dx;

    dx = ot_emit3(g, "com.microsoft.BiasGeluGrad_dX", dy, x, b);
    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, dx);
    if (ot_grad_wants(g, 1))
        ot_grad_set_dx(g, 1, ot_emit_sum_to(g, dx, b));
}

static const ot_port bias_gelu_in[] = {{"X", "T", 0}, {"B", "T", OT_PORT_BIAS}, {0}};
static const ot_tile bias_gelu_tile = {.f32 = bias_gelu_f32, .f64 = ot__ref_bias_gelu_f64};
const ot_op_def ot__op_bias_gelu[] = {
    {.domain = "com.microsoft",
     .name = "BiasGelu",
     .since = 1,
     .inputs = bias_gelu_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_bias,
     .kernels = ot__tile_kernels,
     .tile = &bias_gelu_tile,
     .grad = bias_gelu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
