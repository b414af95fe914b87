// SPDX-License-Identifier: Apache-2.0
// UpdateStart: what a train step gives out is there, so that nothing is left that fails for bad
// values, and parameters may change from here on. It stands in the plans of steps that have the
// update inside the backward pass (passes/pass_update.c).
#include "op/op.h"

static void update_start_infer(ot_infer *c)
{
    ot_infer_set(c, 0, OT_BOOL, &OT_SHAPE(1));
}

static ot_status update_start_run(const ot_run *r)
{
    *(uint8_t *)r->out[0]->data = 1;
    return OT_OK;
}

static const ot_port update_start_in[] = {{"output", "T", OT_PORT_VARIADIC | OT_PORT_HETEROGENEOUS},
                                          {0}};
static const ot_port update_start_out[] = {{"may_update", "bool", 0}, {0}};
static const ot_kernel update_start_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .types = "T: any string",
     .run = update_start_run},
    {0},
};
const ot_op_def ot__op_update_start[] = {
    {.domain = "ai.onnxtrain",
     .name = "UpdateStart",
     .since = 1,
     .inputs = update_start_in,
     .outputs = update_start_out,
     .types = "T: any string",
     .infer = update_start_infer,
     .kernels = update_start_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL | OT_OP_START | OT_OP_PAUSE},
    {0},
};
