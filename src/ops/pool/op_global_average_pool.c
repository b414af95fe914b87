// SPDX-License-Identifier: Apache-2.0
// Y = the mean of all spatial elements of each channel.
#include "ops/pool/pool.h"

static ot_status pool_run(const ot_run *r)
{
    const ot_shape *x = &r->in[0]->shape;
    const int64_t planes = x->dim[0] * x->dim[1], inner = ot__plane_elements(x);

    if (r->in[0]->dtype == OT_F32)
        ot__ref_plane_mean_f32(r->out[0]->data, r->in[0]->data, planes, inner);
    else
        ot__ref_plane_mean_f64(r->out[0]->data, r->in[0]->data, planes, inner);
    return OT_OK;
}

// dX = dY / n for every element of a mean of n.
static void pool_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *share = ot_emit2(g, "Div", dy, ot__emit_plane_elements(g, x, dy));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", share, ot_emit_shape(g, x)));
}

static const ot_kernel pool_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = pool_run},
    {0},
};
const ot_op_def ot__op_global_average_pool[] = {
    {.name = "GlobalAveragePool",
     .since = 1,
     .inputs = ot__pool_in,
     .outputs = ot__pool_out,
     .types = "T: f32 f64",
     .infer = ot__global_pool_infer,
     .kernels = pool_kernels,
     .grad = pool_grad},
    {0},
};
