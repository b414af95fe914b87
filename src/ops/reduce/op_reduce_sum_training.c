// SPDX-License-Identifier: Apache-2.0
// ReduceSumTraining: ReduceSum as ONNX Runtime writes it in training graphs, with the axes always
// an input.
#include "ops/reduce/reduction.h"

static ot_status reduce_sum_training_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_SUM);
}

// dX = dY, the same for every element of the sum.
static void reduce_sum_training_grad(ot_grad *g)
{
    ot_value *dy = ot__reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", dy, ot_emit_shape(g, ot_grad_x(g, 0))));
}

static const ot_port reduce_sum_training_in[] = {
    {"data", "T", 0}, {"axes", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_kernel reduce_sum_training_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_sum_training_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_sum_training[] = {
    {.domain = OT__MS,
     .name = "ReduceSumTraining",
     .since = 1,
     .inputs = reduce_sum_training_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = ot__infer_reduce,
     .kernels = reduce_sum_training_kernels,
     .grad = reduce_sum_training_grad},
    {0},
};
