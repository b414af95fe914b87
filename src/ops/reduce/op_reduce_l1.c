// SPDX-License-Identifier: Apache-2.0
// ReduceL1: sums of magnitudes over axes.
#include "ops/reduce/reduction.h"

static ot_status reduce_l1_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_L1);
}

// Y = sum of |X|:  dX = sign(X) dY.
static void reduce_l1_grad(ot_grad *g)
{
    ot_value *dy = ot__reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", ot_emit1(g, "Sign", ot_grad_x(g, 0)), dy));
}

static const ot_kernel reduce_l1_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_l1_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_l1[] = {
    {.name = "ReduceL1",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_l1_kernels,
     .grad = reduce_l1_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceL1",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_l1_kernels,
     .grad = reduce_l1_grad},
    {0},
};
