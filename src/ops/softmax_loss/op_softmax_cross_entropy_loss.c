// SPDX-License-Identifier: Apache-2.0
// Loss = -log(softmax(scores)) at the labels, weighted and reduced; second output:
// log(softmax(scores)).
#include "ops/softmax_loss/nll.h"

static void sce_infer(ot_infer *c)
{
    if (ot__nll_infer_loss(c, 0, 1, 2))
        ot_infer_set(c, 1, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

static ot_status sce_prepare(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0);
    const bool keeps_log_prob = ot_prep_output_count(p) > 1 && ot_prep_out(p, 1);

    if (!keeps_log_prob)
        ot_prep_scratch(p, (size_t)x->count * ot_dtype_size(x->dtype));
    return ot__nll_prepare(p, 0, 1);
}

static ot_status sce_run(const ot_run *r)
{
    const void *weight = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL;
    void *log_prob = r->n_out > 1 && r->out[1] ? r->out[1]->data : r->scratch;

    return ot__sce_run(r->state, r->in[0], r->in[1], weight, log_prob, r->out[0]);
}

static bool sce_can_simd(const ot_prep *p)
{
    return ot__sce_can_simd(p, 0);
}

static ot_status sce_run_simd(const ot_run *r)
{
    const void *weight = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL;
    void *log_prob = r->n_out > 1 && r->out[1] ? r->out[1]->data : r->scratch;

    return ot__sce_run_simd(r->state, r->in[0], r->in[1], weight, log_prob, r->out[0]);
}

static void sce_grad(ot_grad *g)
{
    ot__sce_grad_emit(g, "com.microsoft.SoftmaxCrossEntropyLossGrad");
}

static const ot_port sce_in[] = {{"scores", "T", OT_PORT_F32},
                                 {"labels", "Tind", OT_PORT_NO_GRAD},
                                 {"weights", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
                                 {0}};
static const ot_port sce_out[] = {
    {"output", "T", OT_PORT_F32}, {"log_prob", "T", OT_PORT_OPTIONAL | OT_PORT_F32}, {0}};
static const ot_kernel sce_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = sce_can_simd,
     .prepare = sce_prepare,
     .run = sce_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = sce_prepare,
     .run = sce_run},
    {0},
};
const ot_op_def ot__op_softmax_cross_entropy_loss[] = {
    {.name = "SoftmaxCrossEntropyLoss",
     .since = 12,
     .inputs = sce_in,
     .outputs = sce_out,
     .attrs = ot__nll_attrs,
     .types = "T: f32 f64; Tind: i32 i64",
     .infer = sce_infer,
     .kernels = sce_kernels,
     .grad = sce_grad},
    {0},
};
