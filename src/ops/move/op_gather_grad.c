// SPDX-License-Identifier: Apache-2.0
// GatherGrad: gradients of slices along one axis, added up where they were taken from.
#include "op/expand.h"
#include "ops/move/move.h"

enum { SHAPE = 0, INDICES = 1, DY = 2 }; // inputs

static void gather_grad_infer(ot_infer *c)
{
    ot__infer_gather_grad(c, SHAPE, DY);
}

static ot_status gather_grad_prep(ot_prep *p)
{
    return ot__prep_gather_grad(p, OT__INDEX_AXIS, INDICES, DY);
}

static ot_status gather_grad_run(const ot_run *r)
{
    return ot__run_gather_grad(r, INDICES, DY);
}

static const ot_port gather_grad_in[] = {
    {"shape", "i64", 0},
    {"indices", "I", 0},
    {"dY", "T", 0},
    {0},
};
static const ot_port gather_grad_out[] = {{"dX", "T", 0}, {0}};
static const ot_attr_spec gather_grad_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0}, {0}};
static const ot_kernel gather_grad_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .adds = 1,
     .prepare = gather_grad_prep,
     .run = gather_grad_run},
    {0},
};
const ot_op_def ot__op_gather_grad[] = {
    {.domain = OT__MS,
     .name = "GatherGrad",
     .since = 1,
     .inputs = gather_grad_in,
     .outputs = gather_grad_out,
     .attrs = gather_grad_attrs,
     .types = "T: f32 f64; I: i32 i64",
     .infer = gather_grad_infer,
     .kernels = gather_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__gather_grad_expand},
    {0},
};
