// SPDX-License-Identifier: Apache-2.0
// ReduceLogSumExp: logarithms of sums of exponentials over axes.
#include "ops/reduce/reduction.h"

static ot_status reduce_log_sum_exp_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_LOG_SUM_EXP);
}

// Y = log(sum of exp(X)):  dX = exp(X - Y) dY.
static void reduce_log_sum_exp_grad(ot_grad *g)
{
    ot_value *y = ot__reduce_restore(g, ot_grad_y(g, 0));
    ot_value *dy = ot__reduce_restore(g, ot_grad_dy(g, 0));
    ot_value *share = ot_emit1(g, "Exp", ot_emit2(g, "Sub", ot_grad_x(g, 0), y));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", share, dy));
}

static const ot_kernel reduce_log_sum_exp_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_log_sum_exp_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_log_sum_exp[] = {
    {.name = "ReduceLogSumExp",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64",
     .infer = ot__infer_reduce,
     .kernels = reduce_log_sum_exp_kernels,
     .grad = reduce_log_sum_exp_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceLogSumExp",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_reduce,
     .kernels = reduce_log_sum_exp_kernels,
     .grad = reduce_log_sum_exp_grad},
    {0},
};
