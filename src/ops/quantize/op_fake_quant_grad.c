// SPDX-License-Identifier: Apache-2.0
// FakeQuantGrad: dX = dY where the mask is true, else 0.
#include "ops/move/move.h"

#include "kernels/kernels.h"

static void fake_quant_grad_infer(ot_infer *c)
{
    if (ot__infer_matches(c, 0, 1))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

static ot_status fake_quant_grad_run(const ot_run *r)
{
    const ot_arg *dy = r->in[0];

    if (dy->dtype == OT_F32)
        ot__ref_mask_scale_f32(r->out[0]->data, dy->data, r->in[1]->data, 1, dy->count);
    else
        ot__ref_mask_scale_f64(r->out[0]->data, dy->data, r->in[1]->data, 1, dy->count);
    return OT_OK;
}

static void fake_quant_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, 0);

    ot_expand_set(g, 0, ot_emit3(g, "Where", ot_grad_x(g, 1), dy, ot_emit_constant(g, 0, dy)));
}

static const ot_port fake_quant_grad_in[] = {{"dY", "T", 0}, {"mask", "bool", 0}, {0}};
static const ot_port fake_quant_grad_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel fake_quant_grad_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .run = fake_quant_grad_run},
    {0},
};
const ot_op_def ot__op_fake_quant_grad[] = {
    {.domain = OT__MS,
     .name = "FakeQuantGrad",
     .since = 1,
     .inputs = fake_quant_grad_in,
     .outputs = fake_quant_grad_out,
     .types = "T: f32 f64",
     .infer = fake_quant_grad_infer,
     .kernels = fake_quant_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = fake_quant_grad_expand},
    {0},
};
