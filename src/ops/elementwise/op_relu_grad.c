// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void relu_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->relu_grad(y, x, n, attrs);
}

// dY where X > 0, else 0
static void relu_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, 0), *zero = ot_emit_constant(g, 0.0, dy);

    ot_expand_set(g, 0,
                  ot_emit3(g, "Where", ot_emit2(g, "Greater", ot_grad_x(g, 1), zero), dy, zero));
}

static const ot_tile relu_grad_tile = {
    .f32 = relu_grad_f32, .f64 = ot__ref_relu_grad_f64, .rounds_once = true};
const ot_op_def ot__op_relu_grad[] = {
    {.domain = "com.microsoft",
     .name = "ReluGrad",
     .since = 1,
     .inputs = ot__gradient_in_x,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = ot__infer_gradient,
     .kernels = ot__tile_kernels,
     .tile = &relu_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,
     .expand = relu_grad_expand},
    {0},
};
