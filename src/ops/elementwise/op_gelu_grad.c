// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void gelu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->gelu_grad(y, x, n, attrs);
}

static void gelu_grad_expand(ot_grad *g)
{
    ot_expand_set(g, 0,
                  ot_emit2(g, "Mul", ot_grad_x(g, 0), ot__emit_gelu_slope(g, ot_grad_x(g, 1))));
}

static const ot_tile gelu_grad_tile = {.f32 = gelu_grad_f32, .f64 = ot__ref_gelu_grad_f64};
const ot_op_def ot__op_gelu_grad[] = {
    {.domain = "com.microsoft",
     .name = "GeluGrad",
     .since = 1,
     .inputs = ot__gradient_in_x,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &gelu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,
     .expand = gelu_grad_expand},
    {0},
};
