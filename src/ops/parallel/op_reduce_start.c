// SPDX-License-Identifier: Apache-2.0
// ReduceStart: the gradients of a bucket are complete, as the flags of their accumulators say by
// being there, and begin to be summed over the ranks. It stands in the training graphs of sessions
// over several ranks (pass_reduce.c).
#include "op/op.h"

// Nothing comes out of it.
static void reduce_start_infer(ot_infer *c)
{
    (void)c;
}

static ot_status reduce_start_prepare(ot_prep *p)
{
    int64_t *bucket = ot_prep_state(p, sizeof *bucket);

    if (bucket != NULL)
        *bucket = ot_attr_int(ot_prep_node(p), "bucket");
    return p->status;
}

static ot_status reduce_start_run(const ot_run *r)
{
    const ot_exchange *exchange = r->step->exchange;

    if (exchange == NULL || exchange->reduce_start == NULL)
        return OT_OK;
    return exchange->reduce_start(exchange->context, *(const int64_t *)r->state);
}

static const ot_port reduce_start_in[] = {{"complete", "bool", OT_PORT_VARIADIC}, {0}};
static const ot_port reduce_start_out[] = {{0}};
static const ot_attr_spec reduce_start_attrs[] = {
    {.name = "bucket", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    {0},
};
static const ot_kernel reduce_start_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_start_prepare,
     .run = reduce_start_run},
    {0},
};
const ot_op_def ot__op_reduce_start[] = {
    {.domain = "ai.onnxtrain",
     .name = "ReduceStart",
     .since = 1,
     .inputs = reduce_start_in,
     .outputs = reduce_start_out,
     .attrs = reduce_start_attrs,
     .infer = reduce_start_infer,
     .kernels = reduce_start_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL | OT_OP_ORDERED | OT_OP_START},
    {0},
};
