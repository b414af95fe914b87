// SPDX-License-Identifier: Apache-2.0
// ScatterND: data with slices, named by index tuples, replaced or combined.
#include "ops/move/move.h"

static void scatter_nd_infer(ot_infer *c)
{
    ot__infer_scatter(c, OT__INDEX_ND);
}

static ot_status scatter_nd_prep(ot_prep *p)
{
    return ot__prep_scatter(p, OT__INDEX_ND);
}

static void scatter_nd_grad(ot_grad *g)
{
    ot__scatter_grad(g, "ScatterND", "GatherND");
}

static const ot_port scatter_nd_in[] = {
    {"data", "T", 0},
    {"indices", "i64", OT_PORT_NO_GRAD},
    {"updates", "T", 0},
    {0},
};
static const ot_port scatter_nd_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec scatter_nd_attrs[] = {
    {.name = "reduction", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "none"},
    {0},
};
static const ot_kernel scatter_nd_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = scatter_nd_prep,
     .run = ot__run_scatter},
    {0},
};
#define SCATTER_ND                                                                                 \
    .name = "ScatterND", .inputs = scatter_nd_in, .outputs = scatter_nd_out,                       \
    .types = "T: any string", .infer = scatter_nd_infer, .kernels = scatter_nd_kernels,            \
    .grad = scatter_nd_grad, .flags = OT_OP_IN_PLACE
const ot_op_def ot__op_scatter_nd[] = {
    {SCATTER_ND, .since = 11},
    {SCATTER_ND, .since = 16, .attrs = scatter_nd_attrs},
    {0},
};
