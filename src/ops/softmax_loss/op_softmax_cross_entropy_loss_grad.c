// SPDX-License-Identifier: Apache-2.0
// dScores = (exp(log_prob) - one-hot(label)) * weight * share of dY: gradient of
// SoftmaxCrossEntropyLoss.
#include "op/expand.h"
#include "ops/softmax_loss/nll.h"

static ot_status sce_grad_prepare(ot_prep *p)
{
    return ot__nll_prepare(p, 1, 2);
}

static ot_status sce_grad_run(const ot_run *r)
{
    const void *weight = r->n_in > 3 && r->in[3] ? r->in[3]->data : NULL;

    return ot__sce_grad_run(r->state, r->in[0], r->in[1], r->in[2], weight, r->out[0]);
}

static bool sce_grad_can_simd(const ot_prep *p)
{
    return ot__sce_can_simd(p, 1);
}

static ot_status sce_grad_run_simd(const ot_run *r)
{
    const void *weight = r->n_in > 3 && r->in[3] ? r->in[3]->data : NULL;

    return ot__sce_grad_run_simd(r->state, r->in[0], r->in[1], r->in[2], weight, r->out[0]);
}

static const ot_port sce_grad_in[] = {{"dY", "T", OT_PORT_F32},
                                      {"log_prob", "T", OT_PORT_F32},
                                      {"label", "Tind", 0},
                                      {"weight", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
                                      {0}};
static const ot_port sce_grad_out[] = {{"d_logits", "T", OT_PORT_F32}, {0}};
static const ot_kernel sce_grad_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = sce_grad_can_simd,
     .prepare = sce_grad_prepare,
     .run = sce_grad_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = sce_grad_prepare,
     .run = sce_grad_run},
    {0},
};
const ot_op_def ot__op_softmax_cross_entropy_loss_grad[] = {
    {.domain = "com.microsoft",
     .name = "SoftmaxCrossEntropyLossGrad",
     .since = 1,
     .inputs = sce_grad_in,
     .outputs = sce_grad_out,
     .attrs = ot__nll_attrs,
     .types = "T: f32 f64; Tind: i32 i64",
     .infer = ot__nll_infer_grad,
     .kernels = sce_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__sce_grad_expand},
    {0},
};
