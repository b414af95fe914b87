// SPDX-License-Identifier: Apache-2.0
// Y = the maximum of all spatial elements of each channel.
#include "ops/pool/pool.h"

static ot_status pool_prepare(ot_prep *p)
{
    ot__pool_scratch_narrow(p);
    return OT_OK;
}

static void pool_f32(const ot_run *r, float *y, const float *x)
{
    const ot_shape *shape = &r->in[0]->shape;

    ot__ref_plane_max_f32(y, x, shape->dim[0] * shape->dim[1], ot__plane_elements(shape));
}

static ot_status pool_run(const ot_run *r)
{
    const ot_shape *x = &r->in[0]->shape;

    if (r->in[0]->dtype == OT_F32)
        pool_f32(r, r->out[0]->data, r->in[0]->data);
    else if (r->in[0]->dtype == OT_F64)
        ot__ref_plane_max_f64(r->out[0]->data, r->in[0]->data, x->dim[0] * x->dim[1],
                              ot__plane_elements(x));
    else
        ot__pool_run_narrow(r, pool_f32);
    return OT_OK;
}

// dY goes to the elements equal to the maximum, in equal shares.
static void pool_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *mask = ot_emit_cast(g, ot_emit2(g, "Equal", x, ot_grad_y(g, 0)), ot_value_dtype(x));
    ot_value *const in[] = {mask, ot__emit_spatial_axes(g, x)};
    ot_value *count = ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 1", in, 2, 1), 0);

    ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", mask, ot_emit2(g, "Div", dy, count)));
}

static const ot_kernel pool_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = pool_prepare,
     .run = pool_run},
    {0},
};
const ot_op_def ot__op_global_max_pool[] = {
    {.name = "GlobalMaxPool",
     .since = 1,
     .inputs = ot__pool_in,
     .outputs = ot__pool_out,
     .types = "T: f32 f64 f16 bf16",
     .infer = ot__global_pool_infer,
     .kernels = pool_kernels,
     .grad = pool_grad},
    {0},
};
