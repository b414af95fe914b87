// SPDX-License-Identifier: Apache-2.0
// Slices named by indices: what Gather, GatherElements, GatherND, their gradients and the
// scattering operators share.
#include "ops/move/move.h"

#include <string.h>

// ---- shapes ----

static bool infer_elements(ot_infer *c, const ot_shape *data, const ot_shape *indices, int axis)
{
    if (indices->ndim != data->ndim) {
        ot_infer_fail(c, "indices have %d axes, data has %d", indices->ndim, data->ndim);
        return false;
    }
    for (int k = 0; k < data->ndim; k++) {
        if (k != axis && ot_dim_is_number(data->dim[k]) && ot_dim_is_number(indices->dim[k]) &&
            indices->dim[k] > data->dim[k]) {
            ot_infer_fail(c, "indices have size %" PRId64 " at axis %d, data has %" PRId64,
                          indices->dim[k], k, data->dim[k]);
            return false;
        }
    }
    return true;
}

static bool infer_nd(ot_infer *c, const ot_shape *data, const ot_shape *indices, int64_t batch_dims,
                     ot_shape *slices)
{
    const int64_t depth = indices->ndim > 0 ? indices->dim[indices->ndim - 1] : 0;

    if (indices->ndim < 1 || data->ndim < 1 || batch_dims < 0 || batch_dims >= indices->ndim ||
        batch_dims >= data->ndim) {
        ot_infer_fail(c, "data has %d axes, indices %d, of which %" PRId64 " count batches",
                      data->ndim, indices->ndim, batch_dims);
        return false;
    }
    if (!ot_dim_is_number(depth))
        return false;
    if (depth < 1 || depth > data->ndim - batch_dims) {
        ot_infer_fail(c, "indices name %" PRId64 " axes, data has %" PRId64, depth,
                      data->ndim - batch_dims);
        return false;
    }
    *slices = (ot_shape){0};
    if (indices->ndim - 1 + data->ndim - batch_dims - depth > OT_MAX_NDIM) {
        ot_infer_fail(c, "the result has more than %d axes", OT_MAX_NDIM);
        return false;
    }
    for (int k = 0; k < indices->ndim - 1; k++)
        slices->dim[slices->ndim++] = indices->dim[k];
    for (int k = (int)(batch_dims + depth); k < data->ndim; k++)
        slices->dim[slices->ndim++] = data->dim[k];
    for (int k = 0; k < batch_dims; k++) {
        if (ot_dim_is_number(data->dim[k]) && ot_dim_is_number(indices->dim[k]) &&
            data->dim[k] != indices->dim[k]) {
            ot_infer_fail(c, "batch axis %d is %" PRId64 " in data and %" PRId64 " in indices", k,
                          data->dim[k], indices->dim[k]);
            return false;
        }
    }
    return true;
}

bool ot__infer_indexed(ot_infer *c, enum ot__index_way way, const ot_shape *data,
                       const ot_shape *indices, int64_t axis, ot_shape *slices)
{
    int at;

    if (way == OT__INDEX_ND)
        return infer_nd(c, data, indices, axis, slices);
    if (!ot_infer_axis(c, axis, data->ndim, &at))
        return false;
    if (way == OT__INDEX_ELEMENTS) {
        *slices = *indices;
        return infer_elements(c, data, indices, at);
    }
    if (data->ndim - 1 + indices->ndim > OT_MAX_NDIM) {
        ot_infer_fail(c, "the result has more than %d axes", OT_MAX_NDIM);
        return false;
    }
    *slices = (ot_shape){0};
    for (int k = 0; k < at; k++)
        slices->dim[slices->ndim++] = data->dim[k];
    for (int k = 0; k < indices->ndim; k++)
        slices->dim[slices->ndim++] = indices->dim[k];
    for (int k = at + 1; k < data->ndim; k++)
        slices->dim[slices->ndim++] = data->dim[k];
    return true;
}

int64_t ot__indexed_attr(const ot_node *node, enum ot__index_way way)
{
    return ot_attr_int(node, way == OT__INDEX_ND ? "batch_dims" : "axis");
}

// ---- offsets ----

// Number of slices and their length, given how many elements they have together.
static void measure(ot__indexed *x, int64_t n_elements)
{
    const int depth = x->way == OT__INDEX_ND ? (int)x->indices.dim[x->indices.ndim - 1] : 0;

    x->slice = 1;
    if (x->way == OT__INDEX_AXIS)
        x->slice = ot__dims_count(x->data.dim + x->axis + 1, x->data.ndim - x->axis - 1);
    else if (x->way == OT__INDEX_ND)
        x->slice = ot__dims_count(x->data.dim + x->axis + depth, x->data.ndim - x->axis - depth);
    x->n = x->slice == 0 ? 0 : n_elements / x->slice;
}

// Fill `offset`; -1, or the position of an index out of range, with the extent it exceeds.
static int64_t find_offsets(const ot__indexed *x, const void *indices, size_t index_size,
                            int64_t *offset, int64_t *extent)
{
    const ot_shape *d = &x->data, *i = &x->indices;
    int64_t bad;

    if (x->n == 0)
        return -1;
    *extent = d->dim[x->axis];
    if (x->way == OT__INDEX_AXIS)
        return ot__ref_index_axis(offset, indices, index_size, ot__dims_count(d->dim, x->axis),
                                  *extent, ot__dims_count(i->dim, i->ndim), x->slice);
    if (x->way == OT__INDEX_ELEMENTS)
        return ot__ref_index_elements(offset, indices, index_size, d, i, x->axis);
    bad = ot__ref_index_nd(offset, indices, d, x->axis, ot__dims_count(i->dim, x->axis),
                           ot__dims_count(i->dim + x->axis, i->ndim - 1 - x->axis),
                           (int)i->dim[i->ndim - 1]);
    if (bad >= 0)
        *extent = d->dim[x->axis + (int)(bad % i->dim[i->ndim - 1])];
    return bad;
}

static ot_status run_offsets(const ot__indexed *x, const ot_arg *indices, int64_t *offset)
{
    int64_t extent = 0;
    const int64_t bad =
        find_offsets(x, indices->data, ot_dtype_size(indices->dtype), offset, &extent);

    return bad < 0 ? OT_OK : ot__index_error(indices, bad, extent);
}

void ot__infer_gathered(ot_infer *c, enum ot__index_way way, int axis)
{
    int n_x, n_i;
    const int64_t *x = ot_infer_values(c, 0, &n_x), *i = ot_infer_values(c, 1, &n_i);
    ot__indexed indexed = {.way = way, .axis = axis};
    int64_t offset[OT_MAX_KNOWN], y[OT_MAX_KNOWN], count, extent = 0, bad;
    ot_shape slices;

    if (x == NULL || i == NULL || !ot__all_numbers(i, n_i))
        return;
    indexed.data = *ot_infer_shape(c, 0);
    indexed.indices = *ot_infer_shape(c, 1);
    if (!ot__infer_indexed(c, way, &indexed.data, &indexed.indices, axis, &slices))
        return;
    if (!ot__shape_count(&slices, &count) || count == 0 || count > OT_MAX_KNOWN)
        return;
    measure(&indexed, count);
    bad = find_offsets(&indexed, i, sizeof(*i), offset, &extent);
    if (bad >= 0) {
        ot_infer_fail(
            c, "index %" PRId64 " at position %" PRId64 " is outside an axis of size %" PRId64,
            i[bad], bad, extent);
        return;
    }
    ot__ref_gather(y, x, offset, indexed.n, indexed.slice, sizeof(*x));
    ot_infer_set_values(c, 0, y, (int)count);
}

// ---- kernels ----

ot__indexed *ot__prep_indexed(ot_prep *p, enum ot__index_way way, const ot_arg *data,
                              const ot_arg *indices)
{
    ot__indexed *x = ot_prep_state(p, sizeof(*x));
    const int64_t axis = ot__indexed_attr(ot_prep_node(p), way);

    if (x == NULL)
        return NULL;
    x->way = way;
    x->data = data->shape;
    x->indices = indices->shape;
    x->axis = (int)(axis < 0 ? axis + data->shape.ndim : axis); // infer has checked it
    return ot__prep_element_size(p, data, &x->size) == OT_OK ? x : NULL;
}

// Scratch for the offsets of the slices of an array of n_elements.
static ot_status prep_offsets(ot_prep *p, ot__indexed *x, int64_t n_elements)
{
    measure(x, n_elements);
    ot_prep_scratch(p, (size_t)x->n * sizeof(int64_t));
    return OT_OK;
}

ot_status ot__prep_gather(ot_prep *p, enum ot__index_way way)
{
    ot__indexed *x = ot__prep_indexed(p, way, ot_prep_in(p, 0), ot_prep_in(p, 1));

    return x == NULL ? p->status : prep_offsets(p, x, ot_prep_out(p, 0)->count);
}

ot_status ot__run_gather(const ot_run *r)
{
    const ot__indexed *x = r->state;

    OT_TRY(run_offsets(x, r->in[1], r->scratch));
    ot__ref_gather(r->out[0]->data, r->in[0]->data, r->scratch, x->n, x->slice, x->size);
    return OT_OK;
}

void ot__infer_gather_grad(ot_infer *c, int shape_input, int dy_input)
{
    const ot_dtype dtype = ot_infer_dtype(c, dy_input);
    ot_shape x;

    if (ot__infer_shape_input(c, shape_input, &x))
        ot_infer_set(c, 0, dtype, &x);
    else
        ot_infer_set_unknown(c, 0, dtype);
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

ot_status ot__prep_gather_grad(ot_prep *p, enum ot__index_way way, int indices_input, int dy_input)
{
    const ot_arg *dy = ot_prep_in(p, dy_input), *dx = ot_prep_out(p, 0);
    ot__indexed *x = ot__prep_indexed(p, way, dx, ot_prep_in(p, indices_input));

    if (x == NULL)
        return p->status;
    OT_TRY(check_gather_grad(p, x, dy));
    x->scatter = ot__ref_scatter_find(dx->dtype, OT__SCATTER_ADD);
    if (x->scatter == NULL)
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "elements of type %s cannot be added",
                            ot_dtype_name(dx->dtype));
    return prep_offsets(p, x, dy->count);
}

ot_status ot__run_gather_grad(const ot_run *r, int indices_input, int dy_input)
{
    const ot__indexed *x = r->state;
    const ot_arg *dx = r->out[0];
    const uint64_t zero = 0;

    OT_TRY(run_offsets(x, r->in[indices_input], r->scratch));
    if (r->adds == 0)
        ot__ref_fill(dx->data, &zero, dx->count, x->size);
    x->scatter(dx->data, r->scratch, r->in[dy_input]->data, x->n, x->slice, dx->count,
               OT__SCATTER_ADD);
    return OT_OK;
}

// ---- scattering ----

bool ot__scatter_op_read(const ot_node *node, ot__scatter_op *op)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = ot_attr_string(node, "reduction");

    *op = OT__SCATTER_NONE;
    if (name[0] == '\0')
        return true;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *op = (ot__scatter_op)i;
            return true;
        }
    }
    return false;
}

// Known elements of data with known updates put in.
static void infer_scattered(ot_infer *c, enum ot__index_way way, int axis)
{
    int n_x, n_i, n_u;
    const int64_t *x = ot_infer_values(c, 0, &n_x), *i = ot_infer_values(c, 1, &n_i);
    const int64_t *u = ot_infer_values(c, 2, &n_u);
    ot__indexed indexed = {.way = way, .axis = axis};
    int64_t offset[OT_MAX_KNOWN], y[OT_MAX_KNOWN], extent = 0;

    if (x == NULL || i == NULL || u == NULL || n_x == 0 || n_u == 0 || !ot__all_numbers(i, n_i))
        return;
    indexed.data = *ot_infer_shape(c, 0);
    indexed.indices = *ot_infer_shape(c, 1);
    measure(&indexed, n_u);
    if (find_offsets(&indexed, i, sizeof(*i), offset, &extent) >= 0)
        return; // the kernel will say which
    memcpy(y, x, (size_t)n_x * sizeof(*y));
    for (int64_t k = 0; k < n_u; k++)
        y[offset[k / indexed.slice] + k % indexed.slice] = u[k];
    ot_infer_set_values(c, 0, y, n_x);
}

void ot__infer_scatter(ot_infer *c, enum ot__index_way way)
{
    const ot_shape *data = ot_infer_shape(c, 0), *updates = ot_infer_shape(c, 2);
    const int64_t axis = way == OT__INDEX_ND ? 0 : ot_attr_int(ot_infer_node(c), "axis");
    ot__scatter_op op;
    ot_shape slices;

    if (!ot__scatter_op_read(ot_infer_node(c), &op)) {
        ot_infer_fail(c, "reduction is '%s', known: none add mul min max",
                      ot_attr_string(ot_infer_node(c), "reduction"));
        return;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), data);
    if (ot__infer_indexed(c, way, data, ot_infer_shape(c, 1), axis, &slices)) {
        bool fits = slices.ndim == updates->ndim;

        for (int k = 0; fits && k < slices.ndim; k++)
            fits = !ot_dim_is_number(slices.dim[k]) || !ot_dim_is_number(updates->dim[k]) ||
                   slices.dim[k] == updates->dim[k];
        if (!fits) {
            ot_infer_fail(c, "updates do not have the shape that data and indices name");
            return;
        }
        if (op == OT__SCATTER_NONE)
            infer_scattered(c, way, (int)(axis < 0 ? axis + data->ndim : axis));
    }
}

ot_status ot__prep_scatter(ot_prep *p, enum ot__index_way way)
{
    const ot_arg *data = ot_prep_in(p, 0);
    ot__indexed *x = ot__prep_indexed(p, way, data, ot_prep_in(p, 1));

    if (x == NULL)
        return p->status;
    ot__scatter_op_read(ot_prep_node(p), &x->op);
    x->scatter = ot__ref_scatter_find(data->dtype, x->op);
    if (x->scatter == NULL)
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "reduction '%s' of elements of type %s",
                            ot_attr_string(ot_prep_node(p), "reduction"),
                            ot_dtype_name(data->dtype));
    return prep_offsets(p, x, ot_prep_in(p, 2)->count);
}

ot_status ot__run_scatter(const ot_run *r)
{
    const ot__indexed *x = r->state;
    const ot_arg *y = r->out[0];

    OT_TRY(run_offsets(x, r->in[1], r->scratch));
    ot__ref_copy_bytes(y->data, r->in[0]->data, (size_t)y->count * x->size);
    x->scatter(y->data, r->scratch, r->in[2]->data, x->n, x->slice, y->count, x->op);
    return OT_OK;
}

ot_status ot__run_rows(const ot_arg *to, const ot_arg *from, const ot_arg *indices,
                       ot__parts_way way)
{
    const ot_arg *whole = way == OT__PART_TO_WHOLE ? to : from;
    const ot_arg *part = way == OT__PART_TO_WHOLE ? from : to;
    const int64_t extent = whole->shape.dim[0] * whole->shape.dim[1];
    const size_t row = (size_t)(part->count / OT_MAX(indices->count, 1)) * ot_dtype_size(to->dtype);

    if (part->shape.dim[0] != indices->count)
        return ot__error(OT_ERR_INVALID, "%" PRId64 " indices for %" PRId64 " rows", indices->count,
                         part->shape.dim[0]);
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t at = ot__arg_int(indices, i);
        const size_t to_row = (size_t)(way == OT__PART_TO_WHOLE ? at : i);
        const size_t from_row = (size_t)(way == OT__PART_TO_WHOLE ? i : at);

        if (at < 0 || at >= extent)
            return ot__index_error(indices, i, extent);
        memcpy((char *)to->data + to_row * row, (const char *)from->data + from_row * row, row);
    }
    return OT_OK;
}
