// ReduceSum: sums over axes.
#include "ops/reduction.h"

static void reduce_sum_infer(ot_infer *c)
{
    ot__infer_reduce_known(c, ot_infer_add);
}

static ot_status reduce_sum_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_SUM);
}

// dX = dY, the same for every element of the sum.
static void reduce_sum_grad(ot_grad *g)
{
    ot_value *dy = ot__reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", dy, ot_emit_shape(g, ot_grad_x(g, 0))));
}

static const ot_kernel reduce_sum_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_sum_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_sum[] = {
    {.name = "ReduceSum",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 i32 i64",
     .infer = reduce_sum_infer,
     .upgrade = ot__reduce_upgrade},
    {.name = "ReduceSum",
     .since = 13,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = reduce_sum_infer,
     .kernels = reduce_sum_kernels,
     .grad = reduce_sum_grad},
    {0},
};
