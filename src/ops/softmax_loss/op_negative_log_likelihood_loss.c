// SPDX-License-Identifier: Apache-2.0
// Loss = -log_prob at the labels, weighted and reduced.
#include "ops/softmax_loss/nll.h"

static void nll_infer(ot_infer *c)
{
    (void)ot__nll_infer_loss(c, 0, 1, 2);
}

static ot_status nll_prepare(ot_prep *p)
{
    return ot__nll_prepare(p, 0, 1);
}

static ot_status nll_run(const ot_run *r)
{
    const ot__nll *p = r->state;
    const ot_arg *x = r->in[0], *labels = r->in[1];
    const void *weight = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL;

    OT_TRY(ot__nll_check(p, labels));
    if (x->dtype == OT_F32)
        ot__ref_nll_f32(r->out[0]->data, x->data, labels->data, weight, p);
    else
        ot__ref_nll_f64(r->out[0]->data, x->data, labels->data, weight, p);
    return OT_OK;
}

// dInput = -one-hot(label) * weight * share of dLoss.
static void nll_grad(ot_grad *g)
{
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0), ot_grad_x(g, 1), ot_grad_x(g, 2)};
    ot_node *node =
        ot_emit(g, "ai.onnxtrain.NegativeLogLikelihoodLossGrad", NULL, in, in[3] ? 4 : 3, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port nll_in[] = {{"input", "T", OT_PORT_F32},
                                 {"target", "Tind", OT_PORT_NO_GRAD},
                                 {"weight", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
                                 {0}};
static const ot_port nll_out[] = {{"loss", "T", OT_PORT_F32}, {0}};
static const ot_kernel nll_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = nll_prepare,
     .run = nll_run},
    {0},
};
const ot_op_def ot__op_negative_log_likelihood_loss[] = {
    {.name = "NegativeLogLikelihoodLoss",
     .since = 12,
     .inputs = nll_in,
     .outputs = nll_out,
     .attrs = ot__nll_attrs,
     .types = "T: f32 f64; Tind: i32 i64",
     .infer = nll_infer,
     .kernels = nll_kernels,
     .grad = nll_grad},
    {0},
};
