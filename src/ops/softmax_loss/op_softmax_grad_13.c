// SPDX-License-Identifier: Apache-2.0
// dX = Y * (dY - sum(Y * dY)) along an axis: gradient of Softmax.
#include "op/expand.h"
#include "ops/softmax_loss/softmax.h"

static ot_status softmax_grad_13_run(const ot_run *r)
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

static ot_status softmax_grad_13_run_simd(const ot_run *r)
{
    return ot__lines_run_simd(r, ot__rows_best()->softmax_grad);
}

static void softmax_grad_13_expand(ot_grad *g)
{
    const int64_t axis = ot_attr_int(ot_grad_node(g), "axis");
    ot_value *dy = ot_grad_x(g, 0), *y = ot_grad_x(g, 1);
    ot_value *sum = ot__emit_sum(g, ot_emit2(g, "Mul", dy, y), &axis, 1, true);

    ot_expand_set(g, 0, ot_emit2(g, "Mul", y, ot_emit2(g, "Sub", dy, sum)));
}

static const ot_port softmax_grad_13_in[] = {{"dY", "T", 0}, {"Y", "T", 0}, {0}};
static const ot_port softmax_grad_13_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel softmax_grad_13_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__lines_can_simd,
     .prepare = ot__lines_prepare,
     .run = softmax_grad_13_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__lines_prepare,
     .run = softmax_grad_13_run},
    {0},
};
const ot_op_def ot__op_softmax_grad_13[] = {
    {.domain = "com.microsoft",
     .name = "SoftmaxGrad_13",
     .since = 1,
     .inputs = softmax_grad_13_in,
     .outputs = softmax_grad_13_out,
     .attrs = ot__axis_last,
     .types = "T: f32 f64",
     .infer = ot__lines_grad_infer,
     .kernels = softmax_grad_13_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE,
     .expand = softmax_grad_13_expand},
    {0},
};
