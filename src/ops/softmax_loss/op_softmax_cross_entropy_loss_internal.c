// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss with the ignored label as an input: ONNX Runtime's form after its
// fusions.
#include "ops/softmax_loss/nll.h"

static void internal_infer(ot_infer *c)
{
    if (ot__infer_one_element(c, 3) && ot__nll_infer_loss(c, 0, 1, 2))
        ot_infer_set(c, 1, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

static ot_status internal_prepare(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0);
    const bool keeps_log_prob = ot_prep_output_count(p) > 1 && ot_prep_out(p, 1);

    if (!keeps_log_prob)
        ot_prep_scratch(p, (size_t)x->count * ot_dtype_size(x->dtype));
    return ot__nll_prepare(p, 0, 1);
}

static ot_status internal_run(const ot_run *r)
{
    const ot__nll p = ot__nll_with_ignore(r, 3);
    const ot_arg *x = r->in[0], *labels = r->in[1];
    const void *weight = r->n_in > 2 && r->in[2] ? r->in[2]->data : NULL;
    void *log_prob = r->n_out > 1 && r->out[1] ? r->out[1]->data : r->scratch;

    return ot__sce_run(&p, x, labels, weight, log_prob, r->out[0]);
}

static void internal_grad(ot_grad *g)
{
    ot__sce_grad_emit(g, "com.microsoft.SoftmaxCrossEntropyLossInternalGrad");
}

static const ot_port internal_in[] = {
    {"scores", "T", OT_PORT_F32},
    {"labels", "Tind", OT_PORT_NO_GRAD},
    {"weights", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {"ignore_index", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0}};
static const ot_port internal_out[] = {
    {"output", "T", OT_PORT_F32}, {"log_prob", "T", OT_PORT_OPTIONAL | OT_PORT_F32}, {0}};
static const ot_kernel internal_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = internal_prepare,
     .run = internal_run},
    {0},
};
const ot_op_def ot__op_softmax_cross_entropy_loss_internal[] = {
    {.domain = "com.microsoft",
     .name = "SoftmaxCrossEntropyLossInternal",
     .since = 1,
     .inputs = internal_in,
     .outputs = internal_out,
     .attrs = ot__nll_internal_attrs,
     .types = "T: f32 f64; Tind: i32 i64",
     .infer = internal_infer,
     .kernels = internal_kernels,
     .grad = internal_grad},
    {0},
};
