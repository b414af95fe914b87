// SPDX-License-Identifier: Apache-2.0
// GatherND: slices named by index tuples.
#include "ops/move/move.h"

static void gather_nd_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    const int64_t batch_dims = ot_attr_int(ot_infer_node(c), "batch_dims");
    ot_shape y;

    if (!ot__infer_indexed(c, OT__INDEX_ND, x, ot_infer_shape(c, 1), batch_dims, &y)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    ot__infer_gathered(c, OT__INDEX_ND, (int)batch_dims);
}

static ot_status gather_nd_prep(ot_prep *p)
{
    return ot__prep_gather(p, OT__INDEX_ND);
}

// dX = dY's slices added up where they were taken from.
static void gather_nd_grad(ot_grad *g)
{
    ot_value *in[3] = {ot_emit_shape(g, ot_grad_x(g, 0)), ot_grad_x(g, 1), ot_grad_dy(g, 0)};
    ot_node *node = ot_emit(g, "com.microsoft.GatherNDGrad", NULL, in, 3, 1);

    ot_emit_int(g, node, "batch_dims", ot_attr_int(ot_grad_node(g), "batch_dims"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port gather_nd_in[] = {{"data", "T", 0}, {"indices", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port gather_nd_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec gather_nd_attrs[] = {
    {.name = "batch_dims", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0}, {0}};
static const ot_kernel gather_nd_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = gather_nd_prep,
     .run = ot__run_gather},
    {0},
};
#define GATHER_ND                                                                                  \
    .name = "GatherND", .inputs = gather_nd_in, .outputs = gather_nd_out,                          \
    .types = "T: any string", .infer = gather_nd_infer, .kernels = gather_nd_kernels,              \
    .grad = gather_nd_grad
const ot_op_def ot__op_gather_nd[] = {
    {GATHER_ND, .since = 11},
    {GATHER_ND, .since = 12, .attrs = gather_nd_attrs},
    {0},
};
