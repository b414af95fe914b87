// SPDX-License-Identifier: Apache-2.0
// ScatterElements: data with elements, named along one axis, replaced or combined.
#include "ops/move/move.h"

static void scatter_elements_infer(ot_infer *c)
{
    ot__infer_scatter(c, OT__INDEX_ELEMENTS);
}

static ot_status scatter_elements_prep(ot_prep *p)
{
    return ot__prep_scatter(p, OT__INDEX_ELEMENTS);
}

static void scatter_elements_grad(ot_grad *g)
{
    ot__scatter_grad(g, "ScatterElements", "GatherElements");
}

static const ot_port scatter_elements_in[] = {
    {"data", "T", 0},
    {"indices", "I", OT_PORT_NO_GRAD},
    {"updates", "T", 0},
    {0},
};
static const ot_port scatter_elements_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec scatter_elements_attrs[] = {
    {.name = "reduction", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "none"},
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {0},
};
static const ot_kernel scatter_elements_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = scatter_elements_prep,
     .run = ot__run_scatter},
    {0},
};
#define SCATTER_ELEMENTS                                                                           \
    .name = "ScatterElements", .inputs = scatter_elements_in, .outputs = scatter_elements_out,     \
    .types = "T: any string; I: i32 i64", .infer = scatter_elements_infer,                         \
    .kernels = scatter_elements_kernels, .grad = scatter_elements_grad, .flags = OT_OP_IN_PLACE
const ot_op_def ot__op_scatter_elements[] = {
    {SCATTER_ELEMENTS, .since = 11, .attrs = scatter_elements_attrs + 1},
    {SCATTER_ELEMENTS, .since = 16, .attrs = scatter_elements_attrs},
    {0},
};
