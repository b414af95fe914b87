// SPDX-License-Identifier: Apache-2.0
// Constants that hold the batch size where the batch comes to: what follows it takes their place.
#include <string.h>

#include "passes/open.h"

static const int64_t *numbers_of(const ot_node *node, int i_input, int *n)
{
    *n = 0;
    return i_input < node->n_inputs && node->inputs[i_input]
               ? ot_value_known(node->inputs[i_input], n)
               : NULL;
}

static ot_status replace_input(ot__opener *o, ot_node *node, int i_input, ot_value *value)
{
    OT_TRY(ot__made(value));
    node->inputs[i_input] = value;
    o->n_changes++;
    return OT_OK;
}

static ot_status mend_holds(const ot__opener *o, const ot_node *node, const ot_value *value)
{
    return ot__error(OT_ERR_INVALID, "%s reads '%s', which holds the batch size %" PRId64,
                     OT_LABEL(node), value->name, o->batch);
}

static ot_status give_rows(ot__opener *o, ot_node *node, int i_input, int axis, int64_t block)
{
    ot_value *rows;

    OT_TRY(ot__open_rows(o, node, node->inputs[i_input], axis, block, &rows));
    return rows ? replace_input(o, node, i_input, rows)
                : mend_holds(o, node, node->inputs[i_input]);
}

// One row is broadcast to any batch, if it has one entry.
static ot_status give_row(ot__opener *o, ot_node *node, int i_input, int axis, int64_t block)
{
    ot_value *row;

    if (block != 1)
        return give_rows(o, node, i_input, axis, block);
    OT_TRY(ot__open_one_row(o, node->inputs[i_input], axis, 1, &row));
    return row ? replace_input(o, node, i_input, row) : give_rows(o, node, i_input, axis, 1);
}

// ---- shapes ----

// The entries that Reshape gets: those that stay, 0 or -1 where the batch is.
static bool reshape_entries(const ot__opener *o, const ot_node *node, const int64_t *known,
                            const ot__place *to, int64_t *list)
{
    const ot_shape *x = ot__open_was(o, node->inputs[0]), *y = ot__open_was(o, node->outputs[0]);
    const ot__place *from = ot__open_place(o, node->inputs[0]);
    const ot_attr *attr = ot__node_attr(node, "allowzero");
    const bool allow_zero = attr && attr->i != 0;

    for (int k = 0; k < y->ndim; k++) {
        const bool copies = known[k] == 0 && !allow_zero;

        list[k] = copies && k != from->axis ? 0 : y->dim[k];
        if (y->dim[k] == 0)
            return false;
    }
    list[to->axis] = to->axis == from->axis && !allow_zero &&
                             x->dim[from->axis] == y->dim[to->axis] && to->outer == from->outer
                         ? 0
                         : -1;
    return true;
}

// One of the places; of several the one that the caller chose.
static const ot__place *choose_mend(ot__opener *o, const ot__place *places, int n)
{
    ot__choices *choices = o->choices;
    const int i = o->n_choices;

    if (n < 2 || i == OT_MAX_CHOICES)
        return places;
    o->n_choices++;
    if (i >= choices->n_given)
        choices->taken[i] = 0;
    choices->possible[i] = (unsigned char)n;
    return &places[OT_MIN(choices->taken[i], n - 1)];
}

static ot_status mend_reshape(ot__opener *o, ot_node *node)
{
    const ot_shape *y = ot__open_was(o, node->outputs[0]);
    int64_t list[OT_MAX_NDIM];
    ot__place places[OT_MAX_NDIM];
    const ot__place *to;
    int n, n_places;
    const int64_t *known = numbers_of(node, 1, &n);

    if (!y || !known || n != y->ndim || n > OT_MAX_NDIM || !ot__dims_are_numbers(known, n))
        return OT_OK;
    n_places = ot__open_places_in_view(o, node->inputs[0], y, places);
    if (n_places == 0)
        return OT_OK;
    to = choose_mend(o, places, n_places);
    if (known[to->axis] <= 0 || !reshape_entries(o, node, known, to, list))
        return OT_OK;
    return replace_input(o, node, 1, ot__open_list(o, node, list, n));
}

// Whether what is repeated as often as the batch has entries, although no batch reaches it, follows
// the batch from there on: at first not, since rows of it are found where they meet the batch.
static bool choose_sources(ot__opener *o)
{
    static const ot__place both[2];

    if (o->i_sources == 0 && o->n_choices < OT_MAX_CHOICES) {
        (void)choose_mend(o, both, (int)OT_COUNT(both));
        o->i_sources = o->n_choices;
    }
    return o->i_sources > 0 && o->choices->taken[o->i_sources - 1] == 1;
}

// Queries of a decoder, which are the same for every row: [1, 5, 8] becomes [batch, 5, 8].
static ot_status mend_source(ot__opener *o, ot_node *node)
{
    const ot_shape *x = ot__open_was(o, node->inputs[0]), *y = ot__open_was(o, node->outputs[0]);
    ot_value *sizes;
    int n;
    const int64_t *known = numbers_of(node, 1, &n);

    if (!x || !y || !known || n != y->ndim || n > OT_MAX_NDIM || !ot__dims_are_numbers(known, n) ||
        o->batch == 1 || ot__open_place(o, node->inputs[0])->axis != -1)
        return OT_OK;
    for (int k = 0; k < n; k++) {
        const int i = k - (n - x->ndim);

        if (known[k] != o->batch || (i >= 0 && x->dim[i] != 1))
            continue;
        if (!choose_sources(o))
            return OT_OK;
        OT_TRY(ot__open_shape(o, node, known, n, k, &sizes));
        return replace_input(o, node, 1, sizes);
    }
    return OT_OK;
}

// Rows that are not of the batch, such as zeros or their own numbers, expanded to as many.
static ot_status mend_expanded_rows(ot__opener *o, ot_node *node)
{
    const ot_shape *was = ot__open_was(o, node->inputs[0]);
    int n;
    const int64_t *known = numbers_of(node, 1, &n);

    for (int k = 0; known && was && k < was->ndim; k++) {
        const int entry = k + n - was->ndim;

        if (entry < 0 || was->dim[k] != o->batch || o->batch == 1 ||
            !ot__dim_is_symbol(known[entry]))
            continue;
        return give_row(o, node, 0, k, 1);
    }
    return mend_source(o, node);
}

// An entry of 1 keeps the extent that is there.
static ot_status mend_expand(ot__opener *o, ot_node *node)
{
    const ot__place *x = ot__open_place(o, node->inputs[0]);
    const ot_shape *was = ot__open_was(o, node->inputs[0]);
    int64_t list[OT_MAX_NDIM];
    int n, axis;
    const int64_t *known = numbers_of(node, 1, &n);

    if (!known || !was || n > OT_MAX_NDIM)
        return OT_OK;
    if (!ot__place_is_known(x))
        return mend_expanded_rows(o, node);
    axis = x->axis + n - was->ndim;
    if (axis < 0 || known[axis] != was->dim[x->axis] || !ot__dims_are_numbers(known, n))
        return OT_OK;
    memcpy(list, known, (size_t)n * sizeof *list);
    list[axis] = 1;
    return replace_input(o, node, 1, ot__open_list(o, node, list, n));
}

// The last input has the sizes: of the output, or of the images that a grid is for.
static ot_status mend_sizes(ot__opener *o, ot_node *node)
{
    const ot__place *x = ot__open_place(o, node->inputs[0]);
    const ot_attr *axes = ot__node_attr(node, "axes");
    const int i_input = node->n_inputs - 1;
    ot_value *sizes;
    int n, at = 0;
    const int64_t *known = numbers_of(node, i_input, &n);

    if (i_input == 0 || !known || n > OT_MAX_NDIM || !ot__dims_are_numbers(known, n) ||
        x->axis < 0 || x->outer != 1 || x->inner != 1)
        return OT_OK;
    for (at = axes ? 0 : x->axis; axes && at < axes->n && axes->ints[at] != x->axis; at++)
        continue;
    if (at >= n || known[at] != o->batch)
        return OT_OK;
    OT_TRY(ot__open_shape(o, node, known, n, at, &sizes));
    return replace_input(o, node, i_input, sizes);
}

// ---- ranges ----

typedef struct range {
    int entry; // of the lists
    int64_t start, end, extent, unit;
} range;

// The entry that cuts the axis of the batch, by steps of 1.
static bool find_range(const ot__opener *o, const ot_node *node, range *r)
{
    const ot__place *x = ot__open_place(o, node->inputs[0]);
    const ot_shape *was = ot__open_was(o, node->inputs[0]);
    int n[4];
    const int64_t *starts = numbers_of(node, 1, &n[0]), *ends = numbers_of(node, 2, &n[1]);
    const int64_t *axes = numbers_of(node, 3, &n[2]), *steps = numbers_of(node, 4, &n[3]);

    if (!was || !ot__place_is_known(x) || !starts || !ends || n[0] != n[1] ||
        (axes && n[2] != n[0]))
        return false;
    for (int i = 0; i < n[0]; i++) {
        int axis;

        if (!ot__axis_normalize(axes ? axes[i] : i, was->ndim, &axis) || axis != x->axis)
            continue;
        *r = (range){i, starts[i], ends[i], was->dim[axis], o->batch * x->inner};
        if ((steps && (n[3] != n[0] || steps[i] != 1)) || !ot__dim_is_number(r->start) ||
            !ot__dim_is_number(r->end))
            return false;
        r->start = OT_MIN(r->start < 0 ? OT_MAX(r->start + r->extent, 0) : r->start, r->extent);
        r->end = r->end < 0 ? r->end + r->extent : r->end;
        return true;
    }
    return false;
}

static ot_status set_bound(ot__opener *o, ot_node *node, int i_input, const range *r, int64_t bound)
{
    int64_t list[OT_MAX_NDIM];
    ot_value *value;
    int n;
    const int64_t *known = numbers_of(node, i_input, &n);

    if (n > OT_MAX_NDIM || !ot__dims_are_numbers(known, n))
        return OT_OK;
    memcpy(list, known, (size_t)n * sizeof *list);
    if (bound == 0 || bound >= r->extent) {
        list[r->entry] = bound == 0 ? 0 : INT64_MAX;
        return replace_input(o, node, i_input, ot__open_list(o, node, list, n));
    }
    if (n != 1)
        return mend_holds(o, node, node->inputs[i_input]);
    OT_TRY(ot__open_count(o, node, bound / o->batch, &value));
    return replace_input(o, node, i_input, value);
}

static ot_status mend_slice(ot__opener *o, ot_node *node)
{
    range r;

    if (!find_range(o, node, &r) || r.start % r.unit != 0 ||
        (r.end % r.unit != 0 && r.end < r.extent) || (r.start == 0 && r.end > INT32_MAX))
        return OT_OK;
    if (r.start > 0)
        OT_TRY(set_bound(o, node, 1, &r, r.start));
    return r.end > INT32_MAX ? OT_OK : set_bound(o, node, 2, &r, r.end);
}

// ---- operands ----

// Where the batch comes to operands: its axis, counted from behind (0: to none), and the entries
// behind it in that axis.
typedef struct arrival {
    int from_right;
    int64_t block;
} arrival;

static arrival find_arrival(const ot__opener *o, const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot__place *x = ot__open_place(o, node->inputs[i]);

        if (node->inputs[i] && ot__place_is_known(x) && x->outer == 1)
            return (arrival){ot__open_was(o, node->inputs[i])->ndim - x->axis, x->inner};
    }
    return (arrival){0};
}

// The operand has as many entries where it meets the batch, and does not follow it.
static bool meets_batch(const ot__opener *o, const ot_value *value, const arrival *at, int *axis)
{
    const ot_shape *was = ot__open_was(o, value);

    *axis = was ? was->ndim - at->from_right : -1;
    return *axis >= 0 && ot__open_place(o, value)->axis == -1 &&
           was->dim[*axis] == o->batch * at->block;
}

static ot_status mend_broadcast(ot__opener *o, ot_node *node)
{
    const arrival at = find_arrival(o, node);

    for (int i = 0; at.from_right > 0 && o->batch > 1 && i < node->n_inputs; i++) {
        int axis;

        if (node->inputs[i] && meets_batch(o, node->inputs[i], &at, &axis))
            OT_TRY(give_row(o, node, i, axis, at.block));
    }
    return OT_OK;
}

static ot_status mend_product(ot__opener *o, ot_node *node)
{
    return find_arrival(o, node).from_right > 2 ? mend_broadcast(o, node) : OT_OK;
}

// Of operators whose inputs have as many entries each along all axes but one.
static ot_status mend_beside(ot__opener *o, ot_node *node)
{
    const ot_attr *attr = ot__node_attr(node, "axis");
    const arrival at = find_arrival(o, node);
    int along, axis;

    for (int i = 0; at.from_right > 0 && i < node->n_inputs; i++) {
        const ot_shape *was = ot__open_was(o, node->inputs[i]);

        if (!was || !ot__axis_normalize(attr ? attr->i : 0, was->ndim, &along) ||
            along == was->ndim - at.from_right || !meets_batch(o, node->inputs[i], &at, &axis))
            continue;
        OT_TRY(give_rows(o, node, i, axis, at.block));
    }
    return OT_OK;
}

// What an exporter calls a tensor that is no parameter: "val_16", "onnx::LSTM_85", "/r/zeros".
static bool is_made_up(const char *name, size_t length)
{
    size_t end = length;

    while (end > 0 && ot__is_digit(name[end - 1]))
        end--;
    return (end < length && end > 0 && name[end - 1] == '_') || name[0] == '/' ||
           strncmp(name, "onnx::", 6) == 0 || strncmp(name, "zeros", 5) == 0;
}

// "['zeros', 'val_2']": whether some name in it is a parameter's.
static bool names_parameter(const char *list)
{
    for (const char *p = list; p && (p = strchr(p, '\'')) != NULL;) {
        const char *end = strchr(p + 1, '\'');

        if (!end)
            return false;
        if (!is_made_up(p + 1, (size_t)(end - p - 1)))
            return true;
        p = end + 1;
    }
    return false;
}

// The state that a layer starts from when it is given none: zeros, which do not train.
static bool is_zero_state(const ot_value *value)
{
    const ot_tensor *t = value->constant;
    const size_t n_bytes = t ? ot_tensor_bytes(t) : 0;
    const char *data = t ? t->data : NULL;

    return n_bytes > 0 && data[0] == 0 && memcmp(data, data + 1, n_bytes - 1) == 0 &&
           is_made_up(value->name, strlen(value->name)) &&
           !names_parameter(
               ot__metadata_get(&value->metadata, "pkg.onnxscript.optimizer.folded_from"));
}

static ot_status give_zeros(ot__opener *o, ot_node *node, int i_input, int axis)
{
    const ot_tensor *was = node->inputs[i_input]->constant;
    ot_tensor *zero = ot__model_tensor_new(o->model, was->dtype, &OT_SHAPE(1));
    ot_value *shape, *zeros;

    OT_TRY(ot__made(zero));
    OT_TRY(ot__open_shape(o, node, was->shape.dim, was->shape.ndim, axis, &shape));
    OT_TRY(ot__open_filled(o, node, shape, zero, &zeros));
    return replace_input(o, node, i_input, zeros);
}

// Lengths and initial states have the batch where it is in the data.
static ot_status mend_recurrent(ot__opener *o, ot_node *node)
{
    enum { LENGTHS = 4, STATE = 5, CELL = 6 };
    const ot_attr *layout = ot__node_attr(node, "layout");
    const bool batch_first = layout && layout->i != 0;
    const ot__place *x = ot__open_place(o, node->inputs[0]);

    if (!ot__place_is_known(x))
        return OT_OK;
    if (x->axis != (batch_first ? 0 : 1))
        return ot__error(OT_ERR_INVALID, "%s takes axis 0 of the input as its steps",
                         OT_LABEL(node));
    for (int i = LENGTHS; i <= CELL && i < node->n_inputs; i++) {
        const int axis = i == LENGTHS || batch_first ? 0 : 1;
        const ot_shape *was = ot__open_was(o, node->inputs[i]);

        if (was && axis < was->ndim && ot__open_place(o, node->inputs[i])->axis == -1 &&
            was->dim[axis] == o->batch)
            OT_TRY(is_zero_state(node->inputs[i]) ? give_zeros(o, node, i, axis)
                                                  : give_rows(o, node, i, axis, 1));
    }
    return OT_OK;
}

// ---- the whole ----

static ot_status (*const menders[OT_OPEN_KINDS])(ot__opener *o, ot_node *node) = {
    [OT_OPEN_CONCAT] = mend_beside,         [OT_OPEN_ELEMENTS] = mend_beside,
    [OT_OPEN_ELEMENTWISE] = mend_broadcast, [OT_OPEN_EXPAND] = mend_expand,
    [OT_OPEN_PRODUCT] = mend_product,       [OT_OPEN_RECURRENT] = mend_recurrent,
    [OT_OPEN_RESHAPE] = mend_reshape,       [OT_OPEN_TILE] = mend_source,
    [OT_OPEN_SIZES] = mend_sizes,           [OT_OPEN_SLICE] = mend_slice,
};

ot_status ot__open_mend(ot__opener *o, ot_node *node)
{
    const ot__open_kind kind = ot__match_open(node);

    return menders[kind] ? menders[kind](o, node) : OT_OK;
}
