// SPDX-License-Identifier: Apache-2.0
// Slices named by indices: what Gather, GatherElements, GatherND, their gradients and the
// scattering operators share.
#include "ops/move/move.h"

// ---- shapes ----

static bool infer_elements(ot_infer *c, const ot_shape *data, const ot_shape *indices, int axis)
{
    if (indices->ndim != data->ndim)
        return ot__refuse(c, "indices have %d axes, data has %d", indices->ndim, data->ndim);
    for (int k = 0; k < data->ndim; k++) {
        if (k != axis && ot_dim_is_number(data->dim[k]) && ot_dim_is_number(indices->dim[k]) &&
            indices->dim[k] > data->dim[k])
            return ot__refuse(c, "indices have size %" PRId64 " at axis %d, data has %" PRId64,
                              indices->dim[k], k, data->dim[k]);
    }
    return true;
}

static bool infer_nd(ot_infer *c, const ot_shape *data, const ot_shape *indices, int64_t batch_dims,
                     ot_shape *slices)
{
    const int64_t depth = indices->ndim > 0 ? indices->dim[indices->ndim - 1] : 0;

    if (indices->ndim < 1 || data->ndim < 1 || batch_dims < 0 || batch_dims >= indices->ndim ||
        batch_dims >= data->ndim)
        return ot__refuse(c, "data has %d axes, indices %d, of which %" PRId64 " count batches",
                          data->ndim, indices->ndim, batch_dims);
    if (!ot_dim_is_number(depth))
        return false;
    if (depth < 1 || depth > data->ndim - batch_dims)
        return ot__refuse(c, "indices name %" PRId64 " axes, data has %" PRId64, depth,
                          data->ndim - batch_dims);
    *slices = (ot_shape){0};
    if (indices->ndim - 1 + data->ndim - batch_dims - depth > OT_MAX_NDIM)
        return ot__refuse(c, "the result has more than %d axes", OT_MAX_NDIM);
    for (int k = 0; k < indices->ndim - 1; k++)
        slices->dim[slices->ndim++] = indices->dim[k];
    for (int k = (int)(batch_dims + depth); k < data->ndim; k++)
        slices->dim[slices->ndim++] = data->dim[k];
    for (int k = 0; k < batch_dims; k++) {
        if (ot__dim_differs(data->dim[k], indices->dim[k]))
            return ot__refuse(c, "batch axis %d is %" PRId64 " in data and %" PRId64 " in indices",
                              k, data->dim[k], indices->dim[k]);
    }
    return true;
}

const char *ot__indexed_attr(enum ot__index_way way)
{
    return way == OT__INDEX_ND ? "batch_dims" : "axis"; // ScatterND has none: 0
}

bool ot__infer_indexed(ot_infer *c, enum ot__index_way way, ot_shape *slices)
{
    const ot_shape *data = ot_infer_shape(c, 0), *indices = ot_infer_shape(c, 1);
    const int64_t axis = ot_attr_int(ot_infer_node(c), ot__indexed_attr(way));
    int at;

    if (way == OT__INDEX_ND)
        return infer_nd(c, data, indices, axis, slices);
    if (!ot_infer_axis(c, axis, data->ndim, &at))
        return false;
    if (way == OT__INDEX_ELEMENTS) {
        *slices = *indices;
        return infer_elements(c, data, indices, at);
    }
    if (data->ndim - 1 + indices->ndim > OT_MAX_NDIM)
        return ot__refuse(c, "the result has more than %d axes", OT_MAX_NDIM);
    *slices = (ot_shape){0};
    for (int k = 0; k < at; k++)
        slices->dim[slices->ndim++] = data->dim[k];
    for (int k = 0; k < indices->ndim; k++)
        slices->dim[slices->ndim++] = indices->dim[k];
    for (int k = at + 1; k < data->ndim; k++)
        slices->dim[slices->ndim++] = data->dim[k];
    return true;
}

// ---- offsets ----

// Number of slices and their length, given how many elements they have together.
static void count_slices(ot__indexed *x, int64_t n_elements)
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
static int64_t find_slice_offsets(const ot__indexed *x, const void *indices, size_t index_size,
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

// As the node states it; infer has checked it.
static int stated_axis(const ot_node *node, const ot__indexed *x)
{
    const int64_t axis = ot_attr_int(node, ot__indexed_attr(x->way));

    return (int)(axis < 0 ? axis + x->data.ndim : axis);
}

bool ot__infer_offsets(ot_infer *c, ot__indexed *x, int64_t n_elements, int64_t *offset,
                       int64_t *bad, int64_t *extent)
{
    int n;
    const int64_t *indices = ot_infer_values(c, 1, &n);

    if (indices == NULL || !ot__all_numbers(indices, n))
        return false;
    x->data = *ot_infer_shape(c, 0);
    x->indices = *ot_infer_shape(c, 1);
    x->axis = stated_axis(ot_infer_node(c), x);
    count_slices(x, n_elements);
    *bad = find_slice_offsets(x, indices, sizeof(*indices), offset, extent);
    return true;
}

// ---- kernels ----

ot__indexed *ot__prep_indexed(ot_prep *p, enum ot__index_way way, const ot_arg *data,
                              const ot_arg *indices)
{
    ot__indexed *x = ot_prep_state(p, sizeof(*x));

    if (x == NULL)
        return NULL;
    x->way = way;
    x->data = data->shape;
    x->indices = indices->shape;
    x->axis = stated_axis(ot_prep_node(p), x);
    return ot__prep_element_size(p, data, &x->size) == OT_OK ? x : NULL;
}

ot_status ot__prep_offsets(ot_prep *p, ot__indexed *x, int64_t n_elements)
{
    count_slices(x, n_elements);
    ot_prep_scratch(p, (size_t)x->n * sizeof(int64_t));
    return OT_OK;
}

ot_status ot__run_offsets(const ot_run *r, const ot_arg *indices)
{
    int64_t extent = 0;
    const int64_t bad = find_slice_offsets(r->state, indices->data, ot_dtype_size(indices->dtype),
                                           r->scratch, &extent);

    return bad < 0 ? OT_OK : ot__index_error(indices, bad, extent);
}

ot__indexed *ot__prep_lines(ot_prep *p, const ot_arg *data, const ot_arg *indices,
                            ot__scatter_op op)
{
    ot__indexed *x = ot__prep_indexed(p, OT__INDEX_ELEMENTS, data, indices);

    if (x == NULL)
        return NULL;
    x->op = op;
    x->put = ot__index_lines_find_put(data->dtype, op);
    x->lines.size = x->size;
    x->lines.index_size = ot_dtype_size(indices->dtype);
    if (x->data.ndim == x->indices.ndim) // else the caller has not checked it yet
        ot__index_lines_init(&x->lines, &x->data, &x->indices, x->axis);
    return x;
}

ot_status ot__index_lines_status(const ot__indexed *x, const ot_arg *indices, int64_t bad)
{
    return bad < 0 ? OT_OK : ot__index_error(indices, bad, x->data.dim[x->axis]);
}
