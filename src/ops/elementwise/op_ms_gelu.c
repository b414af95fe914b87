// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void ms_gelu_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->gelu(y, x, n, attrs);
}

// Y = X * (1 + erf(X / sqrt(2))) / 2
static void ms_gelu_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "com.microsoft.GeluGrad", dy, x));
}

static const ot_tile ms_gelu_tile = {.f32 = ms_gelu_f32, .f64 = ot__ref_gelu_f64};
const ot_op_def ot__op_ms_gelu[] = {
    {.domain = "com.microsoft",
     .name = "Gelu",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &ms_gelu_tile,
     .grad = ms_gelu_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
