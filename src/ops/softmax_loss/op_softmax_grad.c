// SPDX-License-Identifier: Apache-2.0
// Gradient of Softmax before opset 13: everything from `axis` on is one line.
#include "ops/softmax_loss/softmax.h"

static ot_status softmax_grad_run(const ot_run *r)
{
    const ot__lines *l = r->state;
    const ot_arg *dy = r->in[0], *y = r->in[1];
    ot_arg *dx = r->out[0];

    if (dy->dtype == OT_F32)
        ot__ref_softmax_grad_f32(dx->data, dy->data, y->data, l->outer, l->n, l->inner);
    else
        ot__ref_softmax_grad_f64(dx->data, dy->data, y->data, l->outer, l->n, l->inner);
    return OT_OK;
}

static const ot_port softmax_grad_in[] = {{"dY", "T", 0}, {"Y", "T", 0}, {0}};
static const ot_port softmax_grad_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel softmax_grad_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__lines_prepare_flat,
     .run = softmax_grad_run},
    {0},
};
const ot_op_def ot__op_softmax_grad[] = {
    {.domain = "com.microsoft",
     .name = "SoftmaxGrad",
     .since = 1,
     .inputs = softmax_grad_in,
     .outputs = softmax_grad_out,
     .attrs = ot__axis_first,
     .types = "T: f32 f64",
     .infer = ot__lines_grad_infer,
     .kernels = softmax_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE},
    {0},
};
