// SPDX-License-Identifier: Apache-2.0
// dInput = -one-hot(label) * weight * share of dY: gradient of NegativeLogLikelihoodLoss.
#include "op/expand.h"
#include "ops/softmax_loss/nll.h"

static ot_status nll_grad_prepare(ot_prep *p)
{
    return ot__nll_prepare(p, 1, 2);
}

static ot_status nll_grad_run(const ot_run *r)
{
    const ot__nll *p = r->state;
    const ot_arg *dy = r->in[0], *labels = r->in[2];
    const void *weight = r->n_in > 3 && r->in[3] ? r->in[3]->data : NULL;

    OT_TRY(ot__nll_check(p, labels));
    if (dy->dtype == OT_F32)
        ot__ref_nll_grad_f32(r->out[0]->data, dy->data, NULL, labels->data, weight, false, p);
    else
        ot__ref_nll_grad_f64(r->out[0]->data, dy->data, NULL, labels->data, weight, false, p);
    return OT_OK;
}

static const ot_port nll_grad_in[] = {{"dY", "T", OT_PORT_F32},
                                      {"input", "T", OT_PORT_F32},
                                      {"target", "Tind", 0},
                                      {"weight", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                      {0}};
static const ot_port nll_grad_out[] = {{"dX", "T", OT_PORT_F32}, {0}};
static const ot_kernel nll_grad_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = nll_grad_prepare,
     .run = nll_grad_run},
    {0},
};
const ot_op_def ot__op_negative_log_likelihood_loss_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "NegativeLogLikelihoodLossGrad",
     .since = 1,
     .inputs = nll_grad_in,
     .outputs = nll_grad_out,
     .attrs = ot__nll_attrs,
     .types = "T: f32 f64; Tind: i32 i64",
     .infer = ot__nll_infer_grad,
     .kernels = nll_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__nll_grad_expand},
    {0},
};
