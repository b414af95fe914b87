// SPDX-License-Identifier: Apache-2.0
// Size: the number of elements.
#include "ops/move/move.h"

static void size_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int64_t count = 1;

    for (int k = 0; k < x->ndim; k++)
        count = ot_infer_mul(c, count, x->dim[k]);
    ot_infer_set(c, 0, OT_I64, &OT_SHAPE_SCALAR);
    ot_infer_set_values(c, 0, &count, 1);
}

static ot_status size_run(const ot_run *r)
{
    *(int64_t *)r->out[0]->data = r->in[0]->count;
    return OT_OK;
}

static const ot_port size_in[] = {{"data", "T", OT_PORT_NO_GRAD}, {0}};
static const ot_port size_out[] = {{"size", "i64", 0}, {0}};
static const ot_kernel size_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = size_run},
    {0},
};
const ot_op_def ot__op_size[] = {
    {.name = "Size",
     .since = 1,
     .inputs = size_in,
     .outputs = size_out,
     .types = "T: any string",
     .infer = size_infer,
     .kernels = size_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_SHAPE_ONLY},
    {0},
};
