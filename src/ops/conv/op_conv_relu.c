// SPDX-License-Identifier: Apache-2.0
// Y = max(convolution of X by W plus B, 0). Made of Conv and Relu by passes/fuse_conv.c.
#include "ops/conv/conv.h"

static ot_status conv_relu_run_ref(const ot_run *r)
{
    const ot_arg *y = r->out[0];

    OT_TRY(ot__conv_run_ref(r));
    if (y->dtype == OT_F32)
        ot__tiles_at(0)->relu(y->data, (const float *[OT__TILE_INPUTS]){y->data}, y->count, NULL);
    else
        ot__ref_relu_f64(y->data, (const double *[OT__TILE_INPUTS]){y->data}, y->count, NULL);
    return OT_OK;
}

static const ot_port conv_relu_in[] = {
    {"X", "T", 0}, {"W", "T", 0}, {"B", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_port conv_relu_out[] = {{"Y", "T", 0}, {0}};
static const ot_kernel conv_relu_kernels[] = {
    {.name = "dnnl",
     .flags = OT_KERNEL_LIBRARY,
     .can_run = ot__conv_can_dnnl,
     .forms = ot__conv_forms_dnnl,
     .prepare = ot__conv_relu_prepare_dnnl,
     .run = ot__conv_run_dnnl,
     .release = ot__conv_release_dnnl},
    {.name = "dnnl_exact",
     .flags = OT_KERNEL_LIBRARY | OT_KERNEL_THREAD_EXACT,
     .can_run = ot__conv_can_dnnl,
     .forms = ot__conv_forms_dnnl,
     .prepare = ot__conv_relu_prepare_dnnl_exact,
     .run = ot__conv_run_dnnl,
     .release = ot__conv_release_dnnl},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__conv_prepare_ref,
     .run = conv_relu_run_ref},
    {0},
};
const ot_op_def ot__op_conv_relu[] = {
    {.domain = "ai.onnxtrain",
     .name = "ConvRelu",
     .since = 1,
     .inputs = conv_relu_in,
     .outputs = conv_relu_out,
     .attrs = ot__conv_attrs,
     .types = "T: f32 f64",
     .infer = ot__conv_infer,
     .kernels = conv_relu_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
