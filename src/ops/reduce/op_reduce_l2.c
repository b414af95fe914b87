// SPDX-License-Identifier: Apache-2.0
// ReduceL2: roots of sums of squares over axes.
#include "ops/reduce/reduction.h"

static ot_status reduce_l2_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_L2);
}

// Y = sqrt(sum of X^2):  dX = X dY / Y, and 0 where Y is.
static void reduce_l2_grad(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *zero = ot_emit_constant(g, 0.0, y);
    ot_value *ratio = ot_emit2(g, "Div", ot_grad_dy(g, 0), y);

    ratio = ot_emit3(g, "Where", ot_emit2(g, "Equal", y, zero), zero, ratio);
    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", ot_grad_x(g, 0), ot__reduce_restore(g, ratio)));
}

static const ot_kernel reduce_l2_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_l2_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_l2[] = {
    {.name = "ReduceL2",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_l2_kernels,
     .grad = reduce_l2_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceL2",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_l2_kernels,
     .grad = reduce_l2_grad},
    {0},
};
