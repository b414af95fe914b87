// SPDX-License-Identifier: Apache-2.0
// Gradient of SoftmaxCrossEntropyLossInternal: dScores, plus the optional bias.
#include "ops/softmax_loss/nll.h"

static void internal_grad_infer(ot_infer *c)
{
    if (ot_infer_has(c, 5))
        ot_infer_fail(c, "a bias is not supported");
    else if (ot__infer_one_element(c, 4))
        ot__nll_infer_grad(c);
}

static ot_status internal_grad_prepare(ot_prep *p)
{
    return ot__nll_prepare(p, 1, 2);
}

static ot_status internal_grad_run(const ot_run *r)
{
    const ot__nll p = ot__nll_with_ignore(r, 4);
    const ot_arg *dy = r->in[0], *log_prob = r->in[1], *labels = r->in[2];
    const void *weight = r->n_in > 3 && r->in[3] ? r->in[3]->data : NULL;

    return ot__sce_grad_run(&p, dy, log_prob, labels, weight, r->out[0]);
}

static const ot_port internal_grad_in[] = {{"dY", "T", OT_PORT_F32},
                                           {"log_prob", "T", OT_PORT_F32},
                                           {"label", "Tind", 0},
                                           {"weight", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                           {"ignore_index", "i64", OT_PORT_OPTIONAL},
                                           {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                           {0}};
static const ot_port internal_grad_out[] = {{"d_logits", "T", OT_PORT_F32}, {0}};
static const ot_kernel internal_grad_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = internal_grad_prepare,
     .run = internal_grad_run},
    {0},
};
const ot_op_def ot__op_softmax_cross_entropy_loss_internal_grad[] = {
    {.domain = "com.microsoft",
     .name = "SoftmaxCrossEntropyLossInternalGrad",
     .since = 1,
     .inputs = internal_grad_in,
     .outputs = internal_grad_out,
     .attrs = ot__nll_internal_attrs,
     .types = "T: f32 f64; Tind: i32 i64",
     .infer = internal_grad_infer,
     .kernels = internal_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
