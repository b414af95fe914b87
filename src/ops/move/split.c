// SPDX-License-Identifier: Apache-2.0
// Split: parts side by side along one axis. SplitTraining, which ONNX Runtime writes in training
// graphs, always has their extents as an input.
#include "ops/move/move.h"

// Extents of the parts when no list is given: equal ones, the last may be smaller with num_outputs.
static bool even_sizes(ot_infer *c, int64_t extent, int n, bool is_last_smaller, int64_t *sizes)
{
    int64_t part, rest;

    if (!is_last_smaller && ot_dim_is_number(extent) && extent % n != 0)
        return ot__refuse(c, "size %" PRId64 " cannot be split into %d equal parts", extent, n);
    part = ot_infer_div(c, is_last_smaller ? ot_infer_add(c, extent, n - 1) : extent, n);
    for (int i = 0; i < n; i++)
        sizes[i] = part;
    if (is_last_smaller) {
        rest = ot_infer_sub(c, extent, ot_infer_mul(c, part, n - 1));
        if (ot_dim_is_number(rest) && rest < 0)
            return ot__refuse(c, "size %" PRId64 " is too small for %d parts", extent, n);
        sizes[n - 1] = rest;
    }
    return true;
}

// Extents that input 1 states, as far as it is known.
static bool listed_sizes(ot_infer *c, int64_t extent, int n, int64_t *sizes)
{
    int n_listed;
    const int64_t *list = ot_infer_values(c, 1, &n_listed);

    (void)extent;
    if (list != NULL && n_listed != n)
        return ot__refuse(c, "%d sizes for %d outputs", n_listed, n);
    for (int i = 0; i < n; i++) {
        sizes[i] = list == NULL ? ot_dim_unknown() : list[i];
        if (ot_dim_is_number(sizes[i]) && sizes[i] < 0)
            return ot__refuse(c, "split %d has size %" PRId64, i, sizes[i]);
    }
    return true;
}

// Extents of Split: listed ones, which add up to the axis, or else equal ones.
static bool stated_sizes(ot_infer *c, int64_t extent, int n, int64_t *sizes)
{
    const ot_node *node = ot_infer_node(c);
    const bool has_number = ot_attr_given(node, "num_outputs");
    int64_t sum = 0;

    if (has_number && ot_attr_int(node, "num_outputs") != n)
        return ot__refuse(c, "num_outputs is %" PRId64 ", there are %d outputs",
                          ot_attr_int(node, "num_outputs"), n);
    if (!ot_infer_has(c, 1))
        return even_sizes(c, extent, n, has_number, sizes);
    if (!listed_sizes(c, extent, n, sizes))
        return false;
    for (int i = 0; i < n; i++)
        sum = ot_infer_add(c, sum, sizes[i]);
    if (ot__dim_differs(sum, extent))
        return ot__refuse(c, "the sizes in split add up to %" PRId64 ", the axis has %" PRId64, sum,
                          extent);
    return true;
}

// The known elements that the parts take lie in X.
static void set_split_parts(ot_infer *c, int axis, const int64_t *sizes)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    const int64_t extent = x->dim[axis];
    int64_t from = 0;
    int n;
    const bool is_known = ot_infer_values(c, 0, &n) != NULL;

    for (int i = 0; i < ot_infer_output_count(c); i++) {
        const int64_t behind = ot_infer_add(c, from, sizes[i]);
        ot_shape y = *x;

        if (ot_dim_is_number(extent) && ot_dim_is_number(behind) && behind > extent) {
            ot_infer_fail(c, "parts up to %d have size %" PRId64 ", the axis has %" PRId64, i,
                          behind, extent);
            return;
        }
        y.dim[axis] = sizes[i];
        ot_infer_set(c, i, ot_infer_dtype(c, 0), &y);
        if (is_known && ot_dim_is_number(sizes[i])) {
            ot__strided s;

            ot__part_strides(&s, NULL, &y, x, axis, from, OT__WHOLE_TO_PART);
            ot__infer_moved(c, i, &s);
        }
        from = behind;
        if (is_known && !ot_dim_is_number(from))
            return; // where the next part begins is not known
    }
}

static void infer_split(ot_infer *c,
                        bool (*find_sizes)(ot_infer *c, int64_t extent, int n, int64_t *sizes))
{
    const ot_node *node = ot_infer_node(c);
    const int n = ot_infer_output_count(c);
    int64_t *sizes = ot__arena_alloc(node->graph->model->arena, (size_t)n * sizeof(*sizes));
    int axis;

    if (sizes == NULL)
        ot_infer_fail(c, "%s", ot_error_message());
    else if (ot_infer_axis(c, ot_attr_int(node, "axis"), ot_infer_shape(c, 0)->ndim, &axis) &&
             find_sizes(c, ot_infer_shape(c, 0)->dim[axis], n, sizes))
        set_split_parts(c, axis, sizes);
}

static void split_infer(ot_infer *c)
{
    infer_split(c, stated_sizes);
}

static void split_training_infer(ot_infer *c)
{
    infer_split(c, listed_sizes);
}

// ---- kernel ----

typedef struct split_state {
    int axis;
    int64_t inner;       // elements from one along the axis to the next, or
    int64_t unit;        // from so many
    int64_t even;        // extent of a part when no list is given
    ot__strided parts[]; // one per output; x_offset depends on the list
} split_state;

// That of the input, where all parts fit into it: of one that nobody reads it is not known.
static void split_layouts(ot_prep *p)
{
    const int n = ot_prep_output_count(p);
    const ot_layout *layout = ot_prep_offered_in(p, 0);

    for (int i = 0; i < n; i++)
        if (ot_prep_out(p, i) == NULL || !ot__layout_fits(layout, &ot_prep_out(p, i)->shape))
            layout = NULL;
    ot_prep_want_in(p, 0, layout);
    for (int i = 0; i < n; i++)
        if (ot_prep_out(p, i) != NULL)
            ot_prep_want_out(p, i, layout);
}

static ot_status split_prepare(ot_prep *p)
{
    const int n = ot_prep_output_count(p);
    const ot_arg *x = ot_prep_in(p, 0);
    split_state *state = ot_prep_state(p, sizeof(*state) + (size_t)n * sizeof(ot__strided));
    int64_t stride[OT_MAX_NDIM];
    ot_shape lying;

    OT_TRY(ot__made(state));
    if (!ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->shape.ndim, &state->axis))
        return ot_prep_fail(p, OT_ERR_INVALID, "the axis is out of range");
    ot__layout_lying_shape(x->layout, &x->shape, &lying);
    ot__shape_strides(&lying, stride);
    state->inner = stride[ot__layout_lying_axis(x->layout, state->axis, &state->unit)];
    state->even = (x->shape.dim[state->axis] + n - 1) / n;
    for (int i = 0; i < n; i++) {
        const ot_arg *y = ot_prep_out(p, i);
        ot__strided *s = &state->parts[i];

        if (y == NULL)
            continue; // nobody reads it
        ot__part_strides(s, x->layout, &y->shape, &x->shape, state->axis, 0, OT__WHOLE_TO_PART);
        ot__strided_simplify(s);
        OT_TRY(ot__prep_element_size(p, x, &s->size));
    }
    return OT_OK;
}

static ot_status split_run(const ot_run *r, ot__strided_function copy)
{
    const split_state *state = r->state;
    const int64_t extent = r->in[0]->shape.dim[state->axis];
    const ot_arg *list = r->n_in > 1 ? r->in[1] : NULL;
    int64_t from = 0;

    for (int i = 0; i < r->n_out; i++) {
        const ot_arg *y = r->out[i];
        const int64_t size =
            list != NULL ? ot__arg_int(list, i) : OT_MAX(OT_MIN(state->even, extent - from), 0);

        if (size < 0 || size > extent - from || (y != NULL && size != y->shape.dim[state->axis]))
            return ot__error(OT_ERR_INVALID,
                             "split %d has size %" PRId64 " from %" PRId64 " on, of %" PRId64, i,
                             size, from, extent);
        if (y != NULL) {
            ot__strided s = state->parts[i];

            s.x_offset = from / state->unit * state->inner;
            copy(y->data, r->in[0]->data, &s);
        }
        from += size;
    }
    return OT_OK;
}

static ot_status split_run_simd(const ot_run *r)
{
    return split_run(r, ot__simd_strided_copy);
}

static ot_status split_run_ref(const ot_run *r)
{
    return split_run(r, ot__ref_strided_copy);
}

// dX = the parts' gradients side by side, zeros where none arrives.
static void split_grad(ot_grad *g)
{
    const int n = ot_grad_output_count(g);
    ot_value **parts =
        ot__arena_alloc(ot_grad_node(g)->graph->model->arena, (size_t)n * sizeof(ot_value *));
    ot_node *concat;

    if (parts == NULL) {
        ot_grad_fail(g, "%s", ot_error_message());
        return;
    }
    for (int i = 0; i < n; i++)
        parts[i] = ot_grad_dy_or_zeros(g, i);
    concat = ot_emit(g, "Concat", NULL, parts, n, 1);
    ot_emit_int(g, concat, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, concat, 0));
}

static void split_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "split", 1);
}

// Equal parts are told by the number of outputs alone, which the later form wants to be said.
static void split_raise(ot_upgrade *u)
{
    const ot_node *node = ot_upgrade_node(u);

    if (node->n_inputs < 2 || node->inputs[1] == NULL)
        ot_upgrade_set_int(u, "num_outputs", node->n_outputs);
}

static const ot_port split_in[] = {
    {"input", "T", 0}, {"split", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_port split_training_in[] = {
    {"input", "T", 0}, {"split", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port split_out[] = {{"outputs", "T", OT_PORT_VARIADIC}, {0}};
static const ot_attr_spec split_attrs_2[] = {
    {.name = "split", .kind = OT_ATTRIBUTE_INTS}, OT__INT_ATTR("axis", 0), {0}};
static const ot_attr_spec split_attrs_18[] = {
    {.name = "num_outputs", .kind = OT_ATTRIBUTE_INT}, OT__INT_ATTR("axis", 0), {0}};
static const ot_kernel split_kernels[] = {
    OT__STRIDED_LAYOUTS_KERNELS(split_layouts, split_prepare, split_run), {0}};
#define SPLIT .outputs = split_out, .types = "T: any string"
#define SPLIT_13                                                                                   \
    SPLIT, .name = "Split", .inputs = split_in, .infer = split_infer, .kernels = split_kernels,    \
           .grad = split_grad
const ot_op_def ot__op_split[] = {
    {SPLIT, .name = "Split", .since = 2, .inputs = ot__input_in, .attrs = split_attrs_2,
     .infer = split_infer, .upgrade = split_upgrade},
    {SPLIT_13, .since = 13, .attrs = split_attrs_18 + 1, .raise = split_raise},
    {SPLIT_13, .since = 18, .attrs = split_attrs_18},
    {0},
};
const ot_op_def ot__op_split_training[] = {
    {SPLIT, .domain = OT__MS, .name = "SplitTraining", .since = 1, .inputs = split_training_in,
     .attrs = split_attrs_18 + 1, .infer = split_training_infer, .kernels = split_kernels,
     .grad = split_grad},
    {0},
};
