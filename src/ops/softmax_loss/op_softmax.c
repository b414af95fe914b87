// SPDX-License-Identifier: Apache-2.0
// Y = exp(X) / sum of exp(X) along an axis.
#include "ops/softmax_loss/softmax.h"

static ot_status softmax_run(const ot_run *r)
{
    const ot__lines *l = r->state;
    const ot_arg *x = r->in[0];
    ot_arg *y = r->out[0];

    if (x->dtype == OT_F32)
        ot__ref_softmax_f32(y->data, x->data, l->outer, l->n, l->inner);
    else
        ot__ref_softmax_f64(y->data, x->data, l->outer, l->n, l->inner);
    return OT_OK;
}

// dX = Y * (dY - sum(Y * dY)).
static void softmax_grad(ot_grad *g)
{
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_y(g, 0)};
    ot_node *node = ot_emit(g, "com.microsoft.SoftmaxGrad_13", NULL, in, 2, 1);

    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static ot_status softmax_run_simd(const ot_run *r)
{
    return ot__lines_run_simd(r, ot__rows_best()->softmax);
}

static const ot_port softmax_in[] = {{"input", "T", 0}, {0}};
static const ot_port softmax_out[] = {{"output", "T", 0}, {0}};
static const ot_kernel softmax_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__lines_can_simd,
     .prepare = ot__lines_prepare,
     .run = softmax_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__lines_prepare,
     .run = softmax_run},
    {0},
};
const ot_op_def ot__op_softmax[] = {
    {.name = "Softmax",
     .since = 1,
     .inputs = softmax_in,
     .outputs = softmax_out,
     .attrs = ot__axis_first,
     .types = "T: f32 f64",
     .infer = ot__lines_infer,
     .upgrade = ot__lines_upgrade},
    {.name = "Softmax",
     .since = 13,
     .inputs = softmax_in,
     .outputs = softmax_out,
     .attrs = ot__axis_last,
     .types = "T: f32 f64",
     .infer = ot__lines_infer,
     .kernels = softmax_kernels,
     .grad = softmax_grad,
     .flags = OT_OP_IN_PLACE},
    {0},
};
