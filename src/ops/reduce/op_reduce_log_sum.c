// SPDX-License-Identifier: Apache-2.0
// ReduceLogSum: logarithms of sums over axes.
#include "ops/reduce/reduction.h"

static ot_status reduce_log_sum_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_LOG_SUM);
}

// Y = log(sum of X):  dX = dY / exp(Y), the same for every element that was summed.
static void reduce_log_sum_grad(ot_grad *g)
{
    ot_value *each = ot_emit2(g, "Div", ot_grad_dy(g, 0), ot_emit1(g, "Exp", ot_grad_y(g, 0)));
    ot_value *shape = ot_emit_shape(g, ot_grad_x(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", ot__reduce_restore(g, each), shape));
}

static const ot_kernel reduce_log_sum_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_log_sum_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_log_sum[] = {
    {.name = "ReduceLogSum",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64",
     .infer = ot__infer_reduce,
     .kernels = reduce_log_sum_kernels,
     .grad = reduce_log_sum_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceLogSum",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_reduce,
     .kernels = reduce_log_sum_kernels,
     .grad = reduce_log_sum_grad},
    {0},
};
