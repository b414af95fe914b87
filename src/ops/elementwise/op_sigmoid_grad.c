// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void sigmoid_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->sigmoid_grad(y, x, n, attrs);
}

// dY * Y * (1 - Y)
static void sigmoid_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, 0), *y = ot_grad_x(g, 1);
    ot_value *rest = ot_emit2(g, "Sub", ot_emit_constant(g, 1.0, y), y);

    ot_expand_set(g, 0, ot_emit2(g, "Mul", dy, ot_emit2(g, "Mul", y, rest)));
}

static const ot_tile sigmoid_grad_tile = {.f32 = sigmoid_grad_f32, .f64 = ot__ref_sigmoid_grad_f64};
const ot_op_def ot__op_sigmoid_grad[] = {
    {.domain = "com.microsoft",
     .name = "SigmoidGrad",
     .since = 1,
     .inputs = ot__gradient_in_y,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &sigmoid_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,
     .expand = sigmoid_grad_expand},
    {0},
};
