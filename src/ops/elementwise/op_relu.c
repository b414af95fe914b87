// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void relu_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->relu(y, x, n, attrs);
}

// Y = max(X, 0):  dX = dY where Y > 0, else 0.  By Y, so that X need not be kept.
static void relu_grad(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "com.microsoft.ReluGrad", dy, y));
}

static const ot_tile relu_tile = {.f32 = relu_f32,
                                  .f64 = ot__ref_relu_f64,
                                  .i32 = ot__ref_relu_i32,
                                  .i64 = ot__ref_relu_i64,
                                  .rounds_once = true};
const ot_op_def ot__op_relu[] = {
    {.name = "Relu",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &relu_tile,
     .grad = relu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT | OT_OP_LATE_PARTS},
    {0},
};
