// SPDX-License-Identifier: Apache-2.0
// ReduceMean: means over axes.
#include "ops/reduce/reduction.h"

static ot_status reduce_mean_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_MEAN);
}

// dX = dY / n for every element of a mean of n.
static void reduce_mean_grad(ot_grad *g)
{
    ot_value *dy = ot__reduce_restore(g, ot_grad_dy(g, 0));
    ot_value *shape = ot_emit_shape(g, ot_grad_x(g, 0));

    dy = ot_emit2(g, "Div", dy, ot__reduce_count(g));
    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", dy, shape));
}

static const ot_kernel reduce_mean_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_mean_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_mean[] = {
    {.name = "ReduceMean",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_mean_kernels,
     .grad = reduce_mean_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceMean",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_mean_kernels,
     .grad = reduce_mean_grad},
    {0},
};
