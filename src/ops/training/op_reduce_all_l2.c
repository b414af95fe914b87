// SPDX-License-Identifier: Apache-2.0
// ReduceAllL2: the norm of several tensors as if they were one.
#include "ops/move/move.h"

#include <math.h>

static void reduce_all_l2_infer(ot_infer *c)
{
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &OT_SHAPE_SCALAR);
}

static ot_status reduce_all_l2_run(const ot_run *r)
{
    double sum = 0;

    for (int i = 0; i < r->n_in; i++) {
        const ot_arg *x = r->in[i];

        sum += x->dtype == OT_F32 ? ot__ref_sum_square_f32(x->data, x->count)
                                  : ot__ref_sum_square_f64(x->data, x->count);
    }
    if (r->out[0]->dtype == OT_F32)
        *(float *)r->out[0]->data = (float)sqrt(sum);
    else
        *(double *)r->out[0]->data = sqrt(sum);
    return OT_OK;
}

static const ot_port reduce_all_l2_in[] = {{"X", "T", OT_PORT_VARIADIC | OT_PORT_F32}, {0}};
static const ot_port reduce_all_l2_out[] = {{"Y", "T", OT_PORT_F32}, {0}};
static const ot_kernel reduce_all_l2_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .run = reduce_all_l2_run},
    {0},
};
const ot_op_def ot__op_reduce_all_l2[] = {
    {.domain = OT__MS,
     .name = "ReduceAllL2",
     .since = 1,
     .inputs = reduce_all_l2_in,
     .outputs = reduce_all_l2_out,
     .types = "T: f32 f64",
     .infer = reduce_all_l2_infer,
     .kernels = reduce_all_l2_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
