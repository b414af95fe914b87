// SPDX-License-Identifier: Apache-2.0
// Shape: the extents of a tensor, or of the axes start .. end-1. Size: the number of elements.
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

static ot_status shape_prepare(ot_prep *p)
{
    int *start = ot_prep_state(p, sizeof(*start));
    int end;

    OT_TRY(ot__made(start));
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

static const ot_port extents_in[] = {{"data", "T", OT_PORT_NO_GRAD}, {0}};
static const ot_port shape_out[] = {{"shape", "i64", 0}, {0}};
static const ot_port size_out[] = {{"size", "i64", 0}, {0}};
static const ot_attr_spec shape_attrs[] = {
    OT__INT_ATTR("start", 0),
    {.name = "end", .kind = OT_ATTRIBUTE_INT},
    {0},
};
static const ot_kernel shape_kernels[] = {OT__REF_KERNEL(NULL, shape_prepare, shape_run), {0}};
static const ot_kernel size_kernels[] = {OT__REF_KERNEL(NULL, NULL, size_run), {0}};
#define EXTENTS(name_, symbol, since_)                                                             \
    .name = name_, .since = since_, .inputs = extents_in, .outputs = symbol##_out,                 \
    .types = "T: any string", .infer = symbol##_infer, .kernels = symbol##_kernels,                \
    .flags = OT_OP_NO_GRAD | OT_OP_SHAPE_ONLY
const ot_op_def ot__op_shape[] = {
    {EXTENTS("Shape", shape, 1)},
    {EXTENTS("Shape", shape, 15), .attrs = shape_attrs},
    {0},
};
const ot_op_def ot__op_size[] = {
    {EXTENTS("Size", size, 1)},
    {0},
};
