// SPDX-License-Identifier: Apache-2.0
// Y = X - log of the sum of exp(X) along an axis.
#include "ops/softmax_loss/softmax.h"

static ot_status log_softmax_run(const ot_run *r)
{
    const ot__lines *l = r->state;
    const ot_arg *x = r->in[0];
    ot_arg *y = r->out[0];

    if (x->dtype == OT_F32)
        ot__ref_log_softmax_f32(y->data, x->data, l->outer, l->n, l->inner);
    else
        ot__ref_log_softmax_f64(y->data, x->data, l->outer, l->n, l->inner);
    return OT_OK;
}

// dX = dY - exp(Y) * sum(dY).
static void log_softmax_grad(ot_grad *g)
{
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_y(g, 0)};
    ot_node *node = ot_emit(g, "com.microsoft.LogSoftmaxGrad_13", NULL, in, 2, 1);

    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static ot_status log_softmax_run_simd(const ot_run *r)
{
    return ot__lines_run_simd(r, ot__rows_best()->log_softmax);
}

static const ot_port log_softmax_in[] = {{"input", "T", 0}, {0}};
static const ot_port log_softmax_out[] = {{"output", "T", 0}, {0}};
static const ot_kernel log_softmax_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__lines_can_simd,
     .prepare = ot__lines_prepare,
     .run = log_softmax_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__lines_prepare,
     .run = log_softmax_run},
    {0},
};
const ot_op_def ot__op_log_softmax[] = {
    {.name = "LogSoftmax",
     .since = 1,
     .inputs = log_softmax_in,
     .outputs = log_softmax_out,
     .attrs = ot__axis_first,
     .types = "T: f32 f64",
     .infer = ot__lines_infer,
     .upgrade = ot__lines_upgrade},
    {.name = "LogSoftmax",
     .since = 13,
     .inputs = log_softmax_in,
     .outputs = log_softmax_out,
     .attrs = ot__axis_last,
     .types = "T: f32 f64",
     .infer = ot__lines_infer,
     .kernels = log_softmax_kernels,
     .grad = log_softmax_grad,
     .flags = OT_OP_IN_PLACE},
    {0},
};
