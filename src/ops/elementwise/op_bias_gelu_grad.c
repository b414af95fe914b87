// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void bias_gelu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->bias_gelu_grad(y, x, n, attrs);
}

static void bias_gelu_grad_expand(ot_grad *g)
{
    ot_value *x = ot_emit2(g, "Add", ot_grad_x(g, 1), ot_grad_x(g, 2));

    ot_expand_set(g, 0, ot_emit2(g, "Mul", ot_grad_x(g, 0), ot__emit_gelu_slope(g, x)));
}

static const ot_port bias_gelu_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {"B", "T", 0}, {0}};
static const ot_tile bias_gelu_grad_tile = {.f32 = bias_gelu_grad_f32,
                                            .f64 = ot__ref_bias_gelu_grad_f64};
const ot_op_def ot__op_bias_gelu_grad[] = {
    {.domain = "com.microsoft",
     .name = "BiasGeluGrad_dX",
     .since = 1,
     .inputs = bias_gelu_grad_in,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = ot__infer_bias_gradient,
     .kernels = ot__tile_kernels,
     .tile = &bias_gelu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,
     .expand = bias_gelu_grad_expand},
    {0},
};
