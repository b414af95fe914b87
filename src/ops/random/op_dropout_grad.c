// SPDX-License-Identifier: Apache-2.0
// dX = mask ? dY / (1 - ratio) : 0; without training_mode true, nothing was dropped: dX = dY.
#include "kernels/kernels.h"
#include "op/op.h"

static void dropout_grad_infer(ot_infer *c)
{
    if (ot__infer_one_element(c, 2) && ot__infer_one_element(c, 3))
        ot__infer_gradient(c);
}

static ot_status dropout_grad_run(const ot_run *r)
{
    const ot_arg *dy = r->in[0], *mask = r->in[1];
    const ot_arg *ratio_in = r->n_in > 2 ? r->in[2] : NULL, *mode = r->n_in > 3 ? r->in[3] : NULL;
    double ratio = 0.5;

    if (ratio_in)
        ot__convert(&ratio, OT_F64, ratio_in->data, ratio_in->dtype, 1);
    if (mode && *(const uint8_t *)mode->data == 0)
        ratio = 0;
    if (!(ratio >= 0 && ratio < 1))
        return ot__error(OT_ERR_INVALID, "ratio is %g, expected at least 0 and below 1", ratio);
    if (dy->dtype == OT_F32)
        ot__ref_mask_scale_f32(r->out[0]->data, dy->data, mask->data, 1 / (1 - ratio), dy->count);
    else
        ot__ref_mask_scale_f64(r->out[0]->data, dy->data, mask->data, 1 / (1 - ratio), dy->count);
    return OT_OK;
}

static const ot_port dropout_grad_in[] = {{"dy", "T", 0},
                                          {"mask", "bool", 0},
                                          {"ratio", "T1", OT_PORT_OPTIONAL},
                                          {"training_mode", "bool", OT_PORT_OPTIONAL},
                                          {0}};
static const ot_port dropout_grad_out[] = {{"dx", "T", 0}, {0}};
static const ot_attr_spec dropout_grad_attrs[] = {{.name = "seed", .kind = OT_ATTRIBUTE_INT}, {0}};
static const ot_kernel dropout_grad_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = dropout_grad_run},
    {0},
};
const ot_op_def ot__op_dropout_grad[] = {
    {.domain = "com.microsoft",
     .name = "DropoutGrad",
     .since = 1,
     .inputs = dropout_grad_in,
     .outputs = dropout_grad_out,
     .attrs = dropout_grad_attrs,
     .types = "T: f32 f64; T1: f16 f32 f64 bf16",
     .infer = dropout_grad_infer,
     .kernels = dropout_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE},
    {0},
};
