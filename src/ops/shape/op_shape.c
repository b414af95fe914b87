// SPDX-License-Identifier: Apache-2.0
// Shape: the extents of a tensor, or of the axes start .. end-1.
#include "ops/move/move.h"

// start and end brought to 0..ndim; both are clamped, never out of range.
static void read_range(const ot_node *node, int ndim, int *start, int *end)
{
    int64_t from = ot_attr_int(node, "start");
    int64_t to = ot_attr_given(node, "end") ? ot_attr_int(node, "end") : ndim;

    from += from < 0 ? ndim : 0;
    to += to < 0 ? ndim : 0;
    *start = (int)OT_MAX(OT_MIN(from, ndim), 0);
    *end = (int)OT_MAX(OT_MIN(to, ndim), *start);
}

static void shape_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int start, end;

    read_range(ot_infer_node(c), x->ndim, &start, &end);
    ot_infer_set(c, 0, OT_I64, &OT_SHAPE(end - start));
    ot_infer_set_values(c, 0, x->dim + start, end - start);
}

static ot_status shape_prep(ot_prep *p)
{
    int *start = ot_prep_state(p, sizeof(*start));
    int end;

    if (start == NULL)
        return OT_ERR_NO_MEMORY;
    read_range(ot_prep_node(p), ot_prep_in(p, 0)->shape.ndim, start, &end);
    return OT_OK;
}

static ot_status shape_run(const ot_run *r)
{
    const int *start = r->state;

    for (int64_t i = 0; i < r->out[0]->count; i++)
        ((int64_t *)r->out[0]->data)[i] = r->in[0]->shape.dim[*start + i];
    return OT_OK;
}

static const ot_port shape_in[] = {{"data", "T", OT_PORT_NO_GRAD}, {0}};
static const ot_port shape_out[] = {{"shape", "i64", 0}, {0}};
static const ot_attr_spec shape_attrs[] = {
    {.name = "start", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {.name = "end", .kind = OT_ATTRIBUTE_INT},
    {0},
};
static const ot_kernel shape_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = shape_prep,
     .run = shape_run},
    {0},
};
#define SHAPE                                                                                      \
    .name = "Shape", .inputs = shape_in, .outputs = shape_out, .types = "T: any string",           \
    .infer = shape_infer, .kernels = shape_kernels, .flags = OT_OP_NO_GRAD | OT_OP_SHAPE_ONLY
const ot_op_def ot__op_shape[] = {
    {SHAPE, .since = 1},
    {SHAPE, .since = 15, .attrs = shape_attrs},
    {0},
};
