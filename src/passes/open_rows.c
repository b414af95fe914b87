// SPDX-License-Identifier: Apache-2.0
// Values that repeat one row as often as the batch has entries, although no batch reaches them: a
// class token, initial states, masks, positions. A row has several entries of its axis where the
// batch lies in one axis with others, as with heads.
#include <string.h>

#include "passes/open.h"

enum { MAX_FOLDED = 16 << 20 }; // bytes of a value that is computed to look at its rows

static int64_t extent_of(const ot__opener *o, const ot_value *value, int axis)
{
    const ot_shape *was = ot__open_was(o, value);

    return was && axis >= 0 && axis < was->ndim ? was->dim[axis] : OT_DIM_UNKNOWN;
}

static ot_status one_row(ot__opener *o, ot_value *value, int axis, ot_value **out);

// ---- constants ----

static bool rows_are_equal(const ot__opener *o, const ot_tensor *t, int axis)
{
    const size_t n_bytes = ot_tensor_bytes(t);
    int64_t outer = 1;

    for (int k = 0; k < axis; k++)
        outer *= t->shape.dim[k];
    if (t->dtype == OT_STRING || outer == 0 || n_bytes == 0)
        return false;
    const size_t block = n_bytes / (size_t)outer, row = block / (size_t)o->batch;

    for (int64_t k = 0; k < outer; k++) {
        const char *first = (const char *)t->data + (size_t)k * block;

        if (memcmp(first, first + row, block - row) != 0)
            return false;
    }
    return true;
}

static ot_status cut_row(ot__opener *o, const ot_tensor *t, int axis, ot_tensor **out)
{
    ot_shape shape = t->shape;
    int64_t outer = 1;

    for (int k = 0; k < axis; k++)
        outer *= shape.dim[k];
    shape.dim[axis] = o->block;
    *out = ot__model_tensor_new(o->model, t->dtype, &shape);
    OT_TRY(ot__made(*out));
    const size_t row = ot_tensor_bytes(*out) / (size_t)outer;
    const size_t block = row * (size_t)o->batch;

    for (int64_t k = 0; k < outer; k++)
        memcpy((char *)(*out)->data + (size_t)k * row, (const char *)t->data + (size_t)k * block,
               row);
    return OT_OK;
}

static ot_status row_of_constant(ot__opener *o, const ot_value *value, const ot_tensor *t, int axis,
                                 ot_value **out)
{
    char *name = ot__arena_printf(o->model->arena, "%s_row", value->name);
    ot_tensor *row;
    ot_value *to;

    if (!rows_are_equal(o, t, axis))
        return OT_OK;
    OT_TRY(cut_row(o, t, axis, &row));
    to = name ? ot__graph_new_value(o->graph, name) : NULL;
    OT_TRY(ot__made(to));
    to->doc = value->doc;
    to->extra = value->extra;
    to->tensor_extra = value->tensor_extra;
    to->tensor_doc = value->tensor_doc;
    to->metadata = value->metadata;
    *out = to;
    if (value->is_initializer)
        return ot__made(ot__graph_add_initializer(o->graph, to, row) &&
                        ot__arena_push(o->model->arena, &o->rows, &o->rows_capacity, &o->n_rows,
                                       &(struct ot__open_rows_of){value, to}, sizeof *o->rows));
    to->constant = row;
    ot__value_set(to, row->dtype, &row->shape);
    return OT_OK;
}

// ---- nodes ----

// The node again with one input that has one row.
static ot_status again(ot__opener *o, const ot_node *node, int i_input, ot_value *row,
                       ot_value **out)
{
    ot_value **inputs = ot__arena_memdup(o->model->arena, node->inputs,
                                         (size_t)OT_MAX(node->n_inputs, 1) * sizeof *inputs);

    OT_TRY(ot__made(inputs));
    inputs[i_input] = row;
    return ot__open_node(o, node->op_type, node, node, inputs, node->n_inputs, out);
}

static ot_status through(ot__opener *o, const ot_node *node, int i_input, int axis, ot_value **out)
{
    ot_value *row;

    if (extent_of(o, node->inputs[i_input], axis) != o->batch * o->block)
        return OT_OK;
    OT_TRY(one_row(o, node->inputs[i_input], axis, &row));
    return row ? again(o, node, i_input, row, out) : OT_OK;
}

static ot_status constant_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_tensor *t = ot__match_constant(node);

    return t ? row_of_constant(o, node->outputs[0], t, axis, out) : OT_OK;
}

// All inputs that have the rows give one; the others are broadcast along them already.
static ot_status broadcast_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_shape *y = ot__open_was(o, node->outputs[0]);
    ot_value **inputs = ot__arena_memdup(o->model->arena, node->inputs,
                                         (size_t)OT_MAX(node->n_inputs, 1) * sizeof *inputs);

    OT_TRY(ot__made(inputs));
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_shape *x = ot__open_was(o, node->inputs[i]);
        const int k = x ? axis - (y->ndim - x->ndim) : -1;

        if (!x)
            return OT_OK;
        if (k < 0 || extent_of(o, node->inputs[i], k) == 1)
            continue;
        OT_TRY(one_row(o, node->inputs[i], k, &inputs[i]));
        if (!inputs[i])
            return OT_OK;
    }
    return ot__open_node(o, node->op_type, node, node, inputs, node->n_inputs, out);
}

// The elements that the shape input has, with `entry` at the axis.
static ot_status shape_with(ot__opener *o, const ot_node *node, int i_input, int axis,
                            int64_t entry, ot_value **out)
{
    int64_t list[OT_MAX_NDIM];
    int n;
    const int64_t *known = ot_value_known(node->inputs[i_input], &n);

    *out = NULL;
    if (!known || axis >= n || n > OT_MAX_NDIM)
        return OT_OK;
    for (int k = 0; k < n; k++) {
        if (!ot__dim_is_number(known[k]))
            return OT_OK;
        list[k] = k == axis ? entry : known[k];
    }
    *out = ot__open_list(o, node, list, n);
    return ot__made(*out);
}

static ot_status expand_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    ot_value *pair[2] = {node->inputs[0], NULL};
    const ot_shape *x = ot__open_was(o, pair[0]), *y = ot__open_was(o, node->outputs[0]);
    const int k = x ? axis - (y->ndim - x->ndim) : 0;
    bool is_void = x && x->ndim == y->ndim;

    if (!x)
        return OT_OK;
    OT_TRY(shape_with(o, node, 1, axis, o->block, &pair[1]));
    if (!pair[1])
        return OT_OK;
    if (k >= 0 && x->dim[k] != 1) {
        OT_TRY(one_row(o, pair[0], k, &pair[0]));
        return pair[0] ? ot__open_node(o, "Expand", node, NULL, pair, 2, out) : OT_OK;
    }
    for (int d = 0; is_void && d < y->ndim; d++)
        is_void = d == axis ? o->block == 1 : ot__dim_same(x->dim[d], y->dim[d]);
    *out = pair[0];
    return is_void ? OT_OK : ot__open_node(o, "Expand", node, NULL, pair, 2, out);
}

static ot_status constant_of_shape_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    ot_value *shape;

    OT_TRY(shape_with(o, node, 0, axis, o->block, &shape));
    return shape ? again(o, node, 0, shape, out) : OT_OK;
}

static ot_status open_tile_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const int64_t extent = extent_of(o, node->inputs[0], axis);
    ot_value *repeats;

    if (extent == o->batch * o->block)
        return through(o, node, 0, axis, out);
    if (extent <= 0 || o->block % extent != 0)
        return OT_OK;
    OT_TRY(shape_with(o, node, 1, axis, o->block / extent, &repeats));
    return repeats ? again(o, node, 1, repeats, out) : OT_OK;
}

static ot_status gather_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_shape *data = ot__open_was(o, node->inputs[0]), *at = ot__open_was(o, node->inputs[1]);
    const ot_attr *attr = ot__node_attr(node, "axis");
    int gathered;

    if (!data || !at || !ot__axis_normalize(attr ? attr->i : 0, data->ndim, &gathered))
        return OT_OK;
    if (axis < gathered)
        return through(o, node, 0, axis, out);
    if (axis < gathered + at->ndim)
        return through(o, node, 1, axis - gathered, out);
    return through(o, node, 0, axis - at->ndim + 1, out);
}

static ot_status transpose_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_attr *perm = ot__node_attr(node, "perm");
    const ot_shape *y = ot__open_was(o, node->outputs[0]);

    return through(o, node, 0, perm ? (int)perm->ints[axis] : y->ndim - 1 - axis, out);
}

// The axis of `x` that has the batch behind as many elements; it may have more or fewer others with
// it.
static int axis_in_view(const ot__opener *o, const ot_value *x, const ot_shape *y, int axis)
{
    const ot_shape *shape = ot__open_was(o, x);
    int64_t front = 1, before = 1;

    if (!shape || !ot__shape_is_static(shape) || !ot__shape_is_static(y))
        return -1;
    for (int k = 0; k < axis; k++)
        front *= y->dim[k];
    for (int k = 0; k < shape->ndim; before *= shape->dim[k++])
        if (before == front && shape->dim[k] > 0 && shape->dim[k] % o->batch == 0)
            return k;
    return -1;
}

static ot_status view_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_shape *y = ot__open_was(o, node->outputs[0]);
    const int k = axis_in_view(o, node->inputs[0], y, axis);
    const int64_t block = o->block;
    ot_value *pair[2];
    ot_shape shape = *y;

    if (k < 0)
        return OT_OK;
    o->block = ot__open_was(o, node->inputs[0])->dim[k] / o->batch;
    OT_TRY(one_row(o, node->inputs[0], k, &pair[0]));
    o->block = block;
    if (!pair[0])
        return OT_OK;
    shape.dim[axis] = block;
    pair[1] = ot__open_list(o, node, shape.dim, shape.ndim);
    return pair[1] ? ot__open_node(o, "Reshape", node, NULL, pair, 2, out) : OT_ERR_NO_MEMORY;
}

// Slice along other axes; normalisations along axes behind.
static ot_status slice_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    int n;
    const int64_t *axes =
        node->n_inputs > 3 && node->inputs[3] ? ot_value_known(node->inputs[3], &n) : NULL;
    const ot_shape *y = ot__open_was(o, node->outputs[0]);

    for (int i = 0; axes && i < n; i++)
        if (axes[i] == axis || axes[i] + y->ndim == axis)
            return OT_OK;
    return axes ? through(o, node, 0, axis, out) : OT_OK;
}

static ot_status normalized_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_attr *attr = ot__node_attr(node, "axis");
    const ot_shape *y = ot__open_was(o, node->outputs[0]);
    int from;

    if (!ot__axis_normalize(attr ? attr->i : -1, y->ndim, &from) || axis >= from)
        return OT_OK;
    return through(o, node, 0, axis, out);
}

// Rows of the left factor; matrices of both.
static ot_status product_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_shape *y = ot__open_was(o, node->outputs[0]), *a = ot__open_was(o, node->inputs[0]);

    if (a && axis == y->ndim - 2)
        return through(o, node, 0, a->ndim - 2, out);
    return axis < y->ndim - 2 ? broadcast_row(o, node, axis, out) : OT_OK;
}

// Along every axis but one all inputs have as many entries.
static ot_status beside_row(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot_attr *attr = ot__node_attr(node, "axis");
    const ot_shape *y = ot__open_was(o, node->outputs[0]);
    int joined;

    if (!ot__axis_normalize(attr ? attr->i : 0, y->ndim, &joined) || joined == axis)
        return OT_OK;
    return broadcast_row(o, node, axis, out);
}

// How the axis of a node's output is found in one of its inputs.
static ot_status (*const rules[OT_OPEN_KINDS])(ot__opener *o, ot_node *node, int axis,
                                               ot_value **out) = {
    [OT_OPEN_CONCAT] = beside_row,
    [OT_OPEN_CONSTANT] = constant_row,
    [OT_OPEN_CONSTANT_OF_SHAPE] = constant_of_shape_row,
    [OT_OPEN_ELEMENTS] = beside_row,
    [OT_OPEN_ELEMENTWISE] = broadcast_row,
    [OT_OPEN_EXPAND] = expand_row,
    [OT_OPEN_GATHER] = gather_row,
    [OT_OPEN_NORMALIZATION] = normalized_row,
    [OT_OPEN_PRODUCT] = product_row,
    [OT_OPEN_RESHAPE] = view_row,
    [OT_OPEN_SLICE] = slice_row,
    [OT_OPEN_TILE] = open_tile_row,
    [OT_OPEN_TRANSPOSE] = transpose_row,
    [OT_OPEN_VIEW] = view_row,
};

static ot_status row_of_node(ot__opener *o, ot_node *node, int axis, ot_value **out)
{
    const ot__open_kind kind = ot__match_open(node);

    for (int i = 1; i < node->n_outputs; i++)
        if (node->outputs[i])
            return OT_OK;
    return rules[kind] ? rules[kind](o, node, axis, out) : OT_OK;
}

// ---- what no rule follows ----

// A parameter that is computed with must not become a constant.
static ot_status fold_before(ot__opener *o)
{
    const ot_graph *graph = o->before->graph;

    o->is_folded = true;
    for (int i = 0; i < graph->n_initializers; i++) {
        ot_value *value = graph->initializers[i];

        if (ot__dtype_is_float(value->dtype) && value->shape.ndim > 0)
            value->is_input = true; // given from outside, for all that folding knows
    }
    return ot__pass_fold(o->before, MAX_FOLDED);
}

// Masks and positions are computed of numbers alone: then their elements tell.
static ot_status find_row_elements(ot__opener *o, const ot_value *value, const ot_tensor **out)
{
    const ot_value *folded;

    *out = value->constant;
    if (*out || !value->producer)
        return OT_OK;
    if (!o->is_folded)
        OT_TRY(fold_before(o));
    folded = ot__graph_find(o->before->graph, value->name);
    if (folded && !folded->is_initializer)
        *out = folded->constant;
    return OT_OK;
}

static ot_status folded_row(ot__opener *o, const ot_value *value, int axis, ot_value **out)
{
    const ot_tensor *t;

    OT_TRY(find_row_elements(o, value, &t));
    return t ? row_of_constant(o, value, t, axis, out) : OT_OK;
}

static ot_status counted_rows(ot__opener *o, const ot_node *node, ot_value *value, int axis,
                              ot_value **out)
{
    const ot_tensor *t;
    ot_tensor *first;

    if (o->block != 1 || o->batch < 2 || ot__open_place(o, value)->axis != -1 || value->is_input)
        return OT_OK;
    OT_TRY(find_row_elements(o, value, &t));
    if (!t)
        return OT_OK;
    OT_TRY(cut_row(o, t, axis, &first));
    return ot__open_counted(o, node, t, first, axis, out);
}

// ---- the whole ----

static ot_status make_row(ot__opener *o, ot_value *value, int axis, ot_value **out)
{
    const int64_t extent = extent_of(o, value, axis);

    if (extent != o->batch * o->block || ot__open_place(o, value)->axis != -1 || value->is_input)
        return OT_OK;
    if (o->batch == 1) {
        *out = value;
        return OT_OK;
    }
    if (value->constant)
        return row_of_constant(o, value, value->constant, axis, out);
    if (value->producer && value->i_producer_output == 0)
        OT_TRY(row_of_node(o, value->producer, axis, out));
    return *out || !value->producer ? OT_OK : folded_row(o, value, axis, out);
}

// *out: what has been made of the value; NULL: nothing yet.
static ot_status look_up_made(const ot__opener *o, const char *what, const ot_value *value,
                              int axis, const char **key, ot_value **out)
{
    *key = ot__arena_printf(o->model->arena, "%s of %" PRId64 " at %d of %s", what, o->block, axis,
                            value->name);
    *out = *key ? ot__map_get(&o->made, *key) : NULL;
    return ot__made(*key);
}

static ot_status one_row(ot__opener *o, ot_value *value, int axis, ot_value **out)
{
    const char *key;

    OT_TRY(look_up_made(o, "row", value, axis, &key, out));
    if (*out)
        return OT_OK;
    OT_TRY(make_row(o, value, axis, out));
    return ot__made(!*out || ot__map_put(&o->made, key, *out));
}

ot_status ot__open_one_row(ot__opener *o, ot_value *value, int axis, int64_t block, ot_value **out)
{
    o->block = block;
    return one_row(o, value, axis, out);
}

ot_status ot__open_rows(ot__opener *o, const ot_node *node, ot_value *value, int axis,
                        int64_t block, ot_value **out)
{
    const ot_shape *was = ot__open_was(o, value);
    int64_t ones[OT_MAX_NDIM];
    const char *key;
    ot_value *pair[2];

    o->block = block;
    OT_TRY(look_up_made(o, "rows", value, axis, &key, out));
    if (*out)
        return OT_OK;
    OT_TRY(one_row(o, value, axis, &pair[0]));
    if (!pair[0]) {
        OT_TRY(counted_rows(o, node, value, axis, out));
        return ot__made(!*out || ot__map_put(&o->made, key, *out));
    }
    for (int k = 0; k < OT_MAX_NDIM; k++)
        ones[k] = 1;
    OT_TRY(ot__open_shape(o, node, ones, was->ndim, axis, &pair[1]));
    OT_TRY(ot__open_node(o, block == 1 ? "Expand" : "Tile", node, NULL, pair, 2, out));
    return ot__made(ot__map_put(&o->made, key, *out));
}
