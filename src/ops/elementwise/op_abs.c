// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void abs_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->abs(y, x, n, attrs);
}

// Y = |X|:  dX = dY * Sign(X)
static void abs_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", dy, ot_emit1(g, "Sign", x)));
}

static const ot_tile abs_tile = {.f32 = abs_f32,
                                 .f64 = ot__ref_abs_f64,
                                 .i32 = ot__ref_abs_i32,
                                 .i64 = ot__ref_abs_i64,
                                 .rounds_once = true};
const ot_op_def ot__op_abs[] = {
    {.name = "Abs",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &abs_tile,
     .grad = abs_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
