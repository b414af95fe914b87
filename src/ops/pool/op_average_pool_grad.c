// SPDX-License-Identifier: Apache-2.0
// dX = for each element the sum of dY's shares of the windows that it is in.
#include "op/expand.h"
#include "ops/pool/pool.h"

static void average_pool_grad_infer(ot_infer *c)
{
    ot_shape x;

    ot__pool_infer_input(c, ot_infer_shape(c, 0), &x);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &x);
}

static ot_status average_pool_grad_prepare(ot_prep *p)
{
    return ot__pool_prepare(p, ot_prep_out(p, 0), ot_prep_in(p, 0));
}

static const ot_port average_pool_grad_in[] = {{"dY", "T", 0}, {0}};
static const ot_port average_pool_grad_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel average_pool_grad_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = average_pool_grad_prepare,
     .run = ot__average_pool_grad_run},
    {0},
};
const ot_op_def ot__op_average_pool_grad[] = {
    {.name = "AveragePoolGrad", // ONNX Runtime has it in ONNX's own domain
     .since = 9,
     .inputs = average_pool_grad_in,
     .outputs = average_pool_grad_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = average_pool_grad_infer,
     .kernels = average_pool_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__average_pool_grad_expand},
    {0},
};
