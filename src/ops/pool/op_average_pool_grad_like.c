// SPDX-License-Identifier: Apache-2.0
// dX of a given shape = for each element the sum of dY's shares of the windows that it is in. For
// images whose extents are known only at run time.
#include "op/expand.h"
#include "ops/move/move.h"
#include "ops/pool/pool.h"

static void average_pool_grad_like_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0);
    ot__geometry g;
    ot_shape x, made;

    if (!ot__infer_shape_input(c, 1, &x)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    if (x.ndim != dy->ndim) {
        ot_infer_fail(c, "dY has %d axes, the shape %d", dy->ndim, x.ndim);
        return;
    }
    made = x;
    if (!ot__pool_read(c, ot_infer_node(c), &x, &g) || !ot__geometry_infer(c, &g, &x, &made))
        return;
    for (int i = 0; i < x.ndim; i++)
        if (ot_dim_is_number(made.dim[i]) && ot_dim_is_number(dy->dim[i]) &&
            made.dim[i] != dy->dim[i]) {
            ot_infer_fail(c, "dY has size %" PRId64 " along axis %d, the shape makes %" PRId64,
                          dy->dim[i], i, made.dim[i]);
            return;
        }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &x);
}

static ot_status average_pool_grad_like_prepare(ot_prep *p)
{
    return ot__pool_prepare(p, ot_prep_out(p, 0), ot_prep_in(p, 0));
}

static const ot_port average_pool_grad_like_in[] = {{"dY", "T", 0}, {"shape", "i64", 0}, {0}};
static const ot_port average_pool_grad_like_out[] = {{"dX", "T", 0}, {0}};
static const ot_kernel average_pool_grad_like_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = average_pool_grad_like_prepare,
     .run = ot__average_pool_grad_run},
    {0},
};
const ot_op_def ot__op_average_pool_grad_like[] = {
    {.domain = "ai.onnxtrain",
     .name = "AveragePoolGrad",
     .since = 1,
     .inputs = average_pool_grad_like_in,
     .outputs = average_pool_grad_like_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64",
     .infer = average_pool_grad_like_infer,
     .kernels = average_pool_grad_like_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__average_pool_grad_expand},
    {0},
};
