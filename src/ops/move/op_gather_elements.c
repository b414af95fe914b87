// SPDX-License-Identifier: Apache-2.0
// GatherElements: for every index the element that it names along one axis.
#include "ops/move/move.h"

static void gather_elements_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    const int64_t axis = ot_attr_int(ot_infer_node(c), "axis");
    ot_shape y;

    if (!ot__infer_indexed(c, OT__INDEX_ELEMENTS, x, ot_infer_shape(c, 1), axis, &y))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    ot__infer_gathered(c, OT__INDEX_ELEMENTS, (int)(axis < 0 ? axis + x->ndim : axis));
}

static ot_status gather_elements_prep(ot_prep *p)
{
    return ot__prep_gather(p, OT__INDEX_ELEMENTS);
}

// dX = dY's elements added up where they were taken from.
static void gather_elements_grad(ot_grad *g)
{
    ot_value *in[3] = {ot_grad_dy(g, 0), ot_emit_shape(g, ot_grad_x(g, 0)), ot_grad_x(g, 1)};
    ot_node *node = ot_emit(g, "com.microsoft.GatherElementsGrad", NULL, in, 3, 1);

    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port gather_elements_in[] = {
    {"data", "T", 0}, {"indices", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port gather_elements_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec gather_elements_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0}, {0}};
static const ot_kernel gather_elements_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = gather_elements_prep,
     .run = ot__run_gather},
    {0},
};
const ot_op_def ot__op_gather_elements[] = {
    {.name = "GatherElements",
     .since = 11,
     .inputs = gather_elements_in,
     .outputs = gather_elements_out,
     .attrs = gather_elements_attrs,
     .types = "T: any string; I: i32 i64",
     .infer = gather_elements_infer,
     .kernels = gather_elements_kernels,
     .grad = gather_elements_grad},
    {0},
};
