// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements and GatherND: slices that indices name. Their gradients add slices up
// where they were taken from.
#include "op/expand.h"
#include "ops/move/move.h"

// ---- gathering ----

// Output 0's known elements: those that known indices name in known data.
static void infer_gathered(ot_infer *c, enum ot__index_way way, const ot_shape *slices)
{
    int n;
    const int64_t *x = ot_infer_values(c, 0, &n), *i = ot_infer_values(c, 1, &n);
    ot__indexed indexed = {.way = way};
    int64_t offset[OT_MAX_KNOWN], y[OT_MAX_KNOWN], count, extent = 0, bad;

    if (x == NULL || !ot__shape_count(slices, &count) || count == 0 || count > OT_MAX_KNOWN ||
        !ot__infer_offsets(c, &indexed, count, offset, &bad, &extent))
        return;
    if (bad >= 0) {
        ot_infer_fail(
            c, "index %" PRId64 " at position %" PRId64 " is outside an axis of size %" PRId64,
            i[bad], bad, extent);
        return;
    }
    ot__ref_gather(y, x, offset, indexed.n, indexed.slice, sizeof(*x));
    ot_infer_set_values(c, 0, y, (int)count);
}

static void infer_gather(ot_infer *c, enum ot__index_way way)
{
    ot_shape y;

    if (!ot__infer_indexed(c, way, &y)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0)); // the indices' depth is not known
        return;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    infer_gathered(c, way, &y);
}

static ot_status prep_gather(ot_prep *p, enum ot__index_way way)
{
    ot__indexed *x = ot__prep_indexed(p, way, ot_prep_in(p, 0), ot_prep_in(p, 1));

    return x == NULL ? p->status : ot__prep_offsets(p, x, ot_prep_out(p, 0)->count);
}

static ot_status run_gather(const ot_run *r)
{
    const ot__indexed *x = r->state;

    OT_TRY(ot__run_offsets(r, r->in[1]));
    ot__ref_gather(r->out[0]->data, r->in[0]->data, r->scratch, x->n, x->slice, x->size);
    return OT_OK;
}

static ot_status gather_lines_prepare(ot_prep *p)
{
    ot__prep_lines(p, ot_prep_in(p, 0), ot_prep_in(p, 1), OT__SCATTER_NONE);
    return p->status;
}

static ot_status gather_lines_run(const ot_run *r)
{
    const ot__indexed *x = r->state;

    return ot__index_lines_status(
        x, r->in[1],
        ot__index_lines_gather(r->out[0]->data, r->in[0]->data, r->in[1]->data, &x->lines));
}

// ---- gradients: dX = zeros, dY's slices added where they came from ----

// The inputs of the gradient operators.
typedef struct gradient_inputs {
    int shape, indices, dy;
} gradient_inputs;
static const gradient_inputs gradient_inputs_of[] = {
    [OT__INDEX_AXIS] = {0, 1, 2}, [OT__INDEX_ELEMENTS] = {1, 2, 0}, [OT__INDEX_ND] = {0, 1, 2}};

static void emit_gather_grad(ot_grad *g, enum ot__index_way way, const char *op)
{
    const gradient_inputs at = gradient_inputs_of[way];
    const char *attr = ot__indexed_attr(way);
    ot_value *in[3];
    ot_node *node;

    in[at.shape] = ot_emit_shape(g, ot_grad_x(g, 0));
    in[at.indices] = ot_grad_x(g, 1);
    in[at.dy] = ot_grad_dy(g, 0);
    node = ot_emit(g, op, NULL, in, 3, 1);
    ot_emit_int(g, node, attr, ot_attr_int(ot_grad_node(g), attr));
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static void infer_gather_grad(ot_infer *c, enum ot__index_way way)
{
    ot__infer_stated(c, gradient_inputs_of[way].shape,
                     ot_infer_dtype(c, gradient_inputs_of[way].dy));
}

// infer saw neither dY nor, perhaps, the shape's elements: what the offsets rely on is checked
// here.
static ot_status check_gather_grad(ot_prep *p, const ot__indexed *x, const ot_arg *dy)
{
    const ot_shape *d = &x->data, *i = &x->indices;
    const int n_index = x->way == OT__INDEX_ND ? i->ndim - 1 : i->ndim;
    int64_t dims[3 * OT_MAX_NDIM]; // of the slices
    int first = d->ndim, n = 0;    // axes of data from `first` on are in a slice
    bool fits = x->axis >= 0 && x->axis < d->ndim && n_index >= 0;

    if (x->way == OT__INDEX_ELEMENTS) {
        fits = fits && i->ndim == d->ndim;
        for (int k = 0; fits && k < d->ndim; k++)
            fits = k == x->axis || i->dim[k] <= d->dim[k];
    } else if (x->way == OT__INDEX_AXIS) {
        first = x->axis + 1;
        for (int k = 0; fits && k < x->axis; k++)
            dims[n++] = d->dim[k];
    } else if (fits) {
        fits = x->axis <= n_index && i->dim[n_index] >= 1 && i->dim[n_index] <= d->ndim - x->axis;
        first = fits ? x->axis + (int)i->dim[n_index] : d->ndim;
        for (int k = 0; fits && k < x->axis; k++)
            fits = i->dim[k] == d->dim[k];
    }
    for (int k = 0; fits && k < n_index; k++)
        dims[n++] = i->dim[k];
    for (int k = first; fits && k < d->ndim; k++)
        dims[n++] = d->dim[k];
    return fits && ot__dims_count(dims, n) == dy->count
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_INVALID, "shape, indices and dY do not fit each other");
}

static ot_status prep_gather_grad(ot_prep *p, enum ot__index_way way)
{
    const ot_arg *dy = ot_prep_in(p, gradient_inputs_of[way].dy), *dx = ot_prep_out(p, 0);
    ot__indexed *x = ot__prep_indexed(p, way, dx, ot_prep_in(p, gradient_inputs_of[way].indices));

    OT_TRY(p->status);
    OT_TRY(check_gather_grad(p, x, dy));
    x->scatter = ot__ref_scatter_find(dx->dtype, OT__SCATTER_ADD);
    return ot__prep_offsets(p, x, dy->count);
}

static ot_status run_gather_grad(const ot_run *r)
{
    const ot__indexed *x = r->state;
    const gradient_inputs at = gradient_inputs_of[x->way];
    const ot_arg *dx = r->out[0];
    const uint64_t zero = 0;

    OT_TRY(ot__run_offsets(r, r->in[at.indices]));
    if (r->accumulates == 0)
        ot__ref_fill(dx->data, &zero, dx->count, x->size);
    x->scatter(dx->data, dx->data, r->scratch, r->in[at.dy]->data, x->n, x->slice, dx->count,
               OT__SCATTER_ADD);
    return OT_OK;
}

// A single line, and few of long slices, are left to the reference: its threads share out the
// columns of long slices, of which indices may name the same few again and again.
static bool gather_sums_can_run(const ot_prep *p)
{
    enum { FEW = 16, LONG = 32 };
    const ot_arg *dx = ot_prep_out(p, 0);
    const int64_t stated = ot_attr_int(ot_prep_node(p), "axis"), ndim = dx->shape.ndim;
    const int axis = (int)(stated < 0 ? stated + ndim : stated);
    int64_t inner;

    if (axis < 0 || axis >= ndim)
        return ot_prep_declines(p, "the axis is out of range");
    inner = ot__dims_count(dx->shape.dim + axis + 1, (int)ndim - axis - 1);
    if (ot__dims_count(dx->shape.dim, axis) < (inner < LONG ? 2 : FEW))
        return ot_prep_declines(p, "there are few lines");
    return true;
}

static ot_status gather_sums_prepare(ot_prep *p)
{
    const gradient_inputs at = gradient_inputs_of[OT__INDEX_AXIS];
    const ot_arg *indices = ot_prep_in(p, at.indices);
    const ot__indexed *x = ot__prep_indexed(p, OT__INDEX_AXIS, ot_prep_out(p, 0), indices);

    OT_TRY(p->status);
    ot_prep_scratch(p, (size_t)indices->count * sizeof(ot__index_run));
    return check_gather_grad(p, x, ot_prep_in(p, at.dy));
}

static ot_status gather_sums_run(const ot_run *r)
{
    const ot__indexed *x = r->state;
    const gradient_inputs at = gradient_inputs_of[OT__INDEX_AXIS];
    const ot_arg *dx = r->out[0], *indices = r->in[at.indices];
    const int64_t *dim = x->data.dim, extent = dim[x->axis];
    ot__index_sum s = {.y = dx->data, .u = r->in[at.dy]->data, .adds = r->accumulates != 0};
    int64_t bad;

    if (dx->count == 0 && r->in[at.dy]->count == 0)
        return OT_OK;
    bad = ot__index_sum_runs(&s, r->scratch, indices->data, ot_dtype_size(indices->dtype),
                             indices->count, extent,
                             ot__dims_count(dim + x->axis + 1, x->data.ndim - x->axis - 1));
    if (bad >= 0)
        return ot__index_error(indices, bad, extent);
    ot__index_sum_add(&s, ot__dims_count(dim, x->axis), dx->dtype);
    return OT_OK;
}

static ot_status gather_grad_lines_prepare(ot_prep *p)
{
    const gradient_inputs at = gradient_inputs_of[OT__INDEX_ELEMENTS];
    const ot__indexed *x =
        ot__prep_lines(p, ot_prep_out(p, 0), ot_prep_in(p, at.indices), OT__SCATTER_ADD);

    OT_TRY(p->status);
    return check_gather_grad(p, x, ot_prep_in(p, at.dy));
}

static ot_status gather_grad_lines_run(const ot_run *r)
{
    const ot__indexed *x = r->state;
    const gradient_inputs at = gradient_inputs_of[OT__INDEX_ELEMENTS];
    void *dx = r->out[0]->data;

    return ot__index_lines_status(
        x, r->in[at.indices],
        ot__index_lines_scatter(dx, r->accumulates == 0 ? NULL : dx, r->in[at.indices]->data,
                                r->in[at.dy]->data, &x->lines, x->put, x->op));
}

// ---- the records ----

static const ot_attr_spec axis_attrs[] = {OT__INT_ATTR("axis", 0), {0}};
static const ot_attr_spec batch_attrs[] = {OT__INT_ATTR("batch_dims", 0), {0}};

// What the callbacks of operator `symbol` and of its gradient know: the way of its indices. Behind
// that come kernels before the reference, of the operator and of the gradient.
#define CALLBACKS(symbol, way, gradient, own, own_grad)                                            \
    static void symbol##_infer(ot_infer *c)                                                        \
    {                                                                                              \
        infer_gather(c, way);                                                                      \
    }                                                                                              \
    static ot_status symbol##_prepare(ot_prep *p)                                                  \
    {                                                                                              \
        return prep_gather(p, way);                                                                \
    }                                                                                              \
    static void symbol##_grad(ot_grad *g)                                                          \
    {                                                                                              \
        emit_gather_grad(g, way, gradient);                                                        \
    }                                                                                              \
    static void symbol##_grad_infer(ot_infer *c)                                                   \
    {                                                                                              \
        infer_gather_grad(c, way);                                                                 \
    }                                                                                              \
    static ot_status symbol##_grad_prepare(ot_prep *p)                                             \
    {                                                                                              \
        return prep_gather_grad(p, way);                                                           \
    }                                                                                              \
    static const ot_kernel symbol##_kernels[] = {                                                  \
        own OT__REF_KERNEL(NULL, symbol##_prepare, run_gather), {0}};                              \
    static const ot_kernel symbol##_grad_kernels[] = {                                             \
        own_grad{.name = "ref",                                                                    \
                 .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,                            \
                 .accumulates = 1,                                                                 \
                 .prepare = symbol##_grad_prepare,                                                 \
                 .run = run_gather_grad},                                                          \
        {0}};
#define GATHER(name_, symbol, since_, attrs_, index)                                               \
    {                                                                                              \
        .name = name_, .since = since_, .inputs = symbol##_in, .outputs = ot__output_out,          \
        .attrs = attrs_, .types = "T: any string" index, .infer = symbol##_infer,                  \
        .kernels = symbol##_kernels, .grad = symbol##_grad                                         \
    }
#define GATHER_GRAD(name_, symbol, attrs_, index)                                                  \
    {                                                                                              \
        .domain = OT__MS, .name = name_, .since = 1, .inputs = symbol##_grad_in,                   \
        .outputs = ot__gradient_out, .attrs = attrs_, .types = "T: f32 f64" index,                 \
        .infer = symbol##_grad_infer, .kernels = symbol##_grad_kernels, .flags = OT_OP_NO_GRAD,    \
        .expand = ot__##symbol##_grad_expand                                                       \
    }

#define INDEX "; I: i32 i64"
static const ot_port gather_in[] = {
    {"data", "T", OT_PORT_TABLE}, {"indices", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port gather_grad_in[] = {
    {"shape", "i64", 0}, {"indices", "I", 0}, {"dY", "T", 0}, {0}};
#define SUMS_KERNEL                                                                                \
    {.name = "simd",                                                                               \
     .flags = OT_KERNEL_THREAD_EXACT,                                                              \
     .accumulates = 1,                                                                             \
     .can_run = gather_sums_can_run,                                                               \
     .prepare = gather_sums_prepare,                                                               \
     .run = gather_sums_run},
CALLBACKS(gather, OT__INDEX_AXIS, "com.microsoft.GatherGrad", , SUMS_KERNEL)
const ot_op_def ot__op_gather[] = {GATHER("Gather", gather, 1, axis_attrs, INDEX), {0}};
const ot_op_def ot__op_gather_grad[] = {GATHER_GRAD("GatherGrad", gather, axis_attrs, INDEX), {0}};

static const ot_port gather_elements_in[] = {
    {"data", "T", 0}, {"indices", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port gather_elements_grad_in[] = {
    {"dY", "T", 0}, {"shape", "i64", 0}, {"indices", "I", 0}, {0}};
#define LINES_KERNEL(prefix, accumulates_)                                                         \
    {.name = "lines",                                                                              \
     .flags = OT_KERNEL_THREAD_EXACT,                                                              \
     .accumulates = (accumulates_),                                                                \
     .prepare = prefix##_lines_prepare,                                                            \
     .run = prefix##_lines_run},
CALLBACKS(gather_elements, OT__INDEX_ELEMENTS, "com.microsoft.GatherElementsGrad",
          LINES_KERNEL(gather, 0), LINES_KERNEL(gather_grad, 1))
const ot_op_def ot__op_gather_elements[] = {
    GATHER("GatherElements", gather_elements, 11, axis_attrs, INDEX), {0}};
const ot_op_def ot__op_gather_elements_grad[] = {
    GATHER_GRAD("GatherElementsGrad", gather_elements, axis_attrs, INDEX), {0}};

static const ot_port gather_nd_in[] = {{"data", "T", 0}, {"indices", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port gather_nd_grad_in[] = {
    {"shape", "i64", 0}, {"indices", "i64", 0}, {"dY", "T", 0}, {0}};
CALLBACKS(gather_nd, OT__INDEX_ND, "com.microsoft.GatherNDGrad", , )
const ot_op_def ot__op_gather_nd[] = {GATHER("GatherND", gather_nd, 11, NULL, ""),
                                      GATHER("GatherND", gather_nd, 12, batch_attrs, ""),
                                      {0}};
const ot_op_def ot__op_gather_nd_grad[] = {GATHER_GRAD("GatherNDGrad", gather_nd, batch_attrs, ""),
                                           {0}};
