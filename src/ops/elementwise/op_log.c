// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void log_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->log(y, x, n, attrs);
}

// Y = log(X):  dX = dY / X
static void log_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Div", dy, x));
}

static const ot_tile log_tile = {.f32 = log_f32, .f64 = ot__ref_log_f64};
const ot_op_def ot__op_log[] = {
    {.name = "Log",
     .since = 6,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &log_tile,
     .grad = log_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
