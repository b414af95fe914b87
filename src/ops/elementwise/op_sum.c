// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

static void sum_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    ot__tiles_best()->sum(y, x, n, attrs);
}

// Y = X0 + X1 + ...:  each dXi = dY, summed over the axes that were broadcast.
static void sum_grad(ot_grad *g)
{
    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_sum_to(g, ot_grad_dy(g, 0), ot_grad_x(g, i)));
}

static const ot_port sum_in[] = {{"data_0", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port sum_out[] = {{"sum", "T", 0}, {0}};
static const ot_tile sum_tile = {.f32 = sum_f32,
                                 .f64 = ot__ref_sum_f64,
                                 .i32 = ot__ref_sum_i32,
                                 .i64 = ot__ref_sum_i64,
                                 .rounds_once = true};
const ot_op_def ot__op_sum[] = {
    {.name = "Sum",
     .since = 6,
     .inputs = sum_in,
     .outputs = sum_out,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_broadcast,
     .kernels = ot__tile_kernels,
     .tile = &sum_tile,
     .grad = sum_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
