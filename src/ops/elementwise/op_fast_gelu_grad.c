// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void fast_gelu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->fast_gelu_grad(y, x, n, attrs);
}

static void fast_gelu_grad_expand(ot_grad *g)
{
    ot_expand_set(
        g, 0, ot_emit2(g, "Mul", ot_grad_x(g, 0), ot__emit_fast_gelu_slope(g, ot_grad_x(g, 1))));
}

static const ot_tile fast_gelu_grad_tile = {.f32 = fast_gelu_grad_f32,
                                            .f64 = ot__ref_fast_gelu_grad_f64};
const ot_op_def ot__op_fast_gelu_grad[] = {
    {.domain = "com.microsoft",
     .name = "FastGeluGrad",
     .since = 1,
     .inputs = ot__gradient_in_x,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &fast_gelu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,
     .expand = fast_gelu_grad_expand},
    {0},
};
