// SPDX-License-Identifier: Apache-2.0
// ReduceSumSquare: sums of squares over axes.
#include "ops/reduce/reduction.h"

static ot_status reduce_sum_square_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_SUM_SQUARE);
}

// Y = sum of X^2:  dX = 2 X dY.
static void reduce_sum_square_grad(ot_grad *g)
{
    ot_value *dy = ot__reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", ot_grad_x(g, 0), ot_emit2(g, "Add", dy, dy)));
}

static const ot_kernel reduce_sum_square_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_sum_square_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_sum_square[] = {
    {.name = "ReduceSumSquare",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_sum_square_kernels,
     .grad = reduce_sum_square_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceSumSquare",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_sum_square_kernels,
     .grad = reduce_sum_square_grad},
    {0},
};
