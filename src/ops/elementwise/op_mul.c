// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void mul_infer(ot_infer *c)
{
    ot__infer_broadcast_known(c, ot_infer_mul);
}

static void mul_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->mul(y, x, n, attrs);
}

// C = A * B:  dA = dC * B and dB = dC * A, each summed over the axes that were broadcast.
static void mul_grad(ot_grad *g)
{
    ot_value *a = ot_grad_x(g, 0), *b = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);

    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, ot_emit_sum_to(g, ot_emit2(g, "Mul", dy, b), a));
    if (ot_grad_wants(g, 1))
        ot_grad_set_dx(g, 1, ot_emit_sum_to(g, ot_emit2(g, "Mul", dy, a), b));
}

static const ot_tile mul_tile = {.f32 = mul_f32,
                                 .f64 = ot__ref_mul_f64,
                                 .i32 = ot__ref_mul_i32,
                                 .i64 = ot__ref_mul_i64,
                                 .rounds_once = true};
const ot_op_def ot__op_mul[] = {
    {.name = "Mul",
     .since = 7,
     .inputs = ot__binary_in,
     .outputs = ot__binary_out,
     .types = "T: f32 f64 i32 i64",
     .infer = mul_infer,
     .kernels = ot__tile_kernels,
     .tile = &mul_tile,
     .grad = mul_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
