// SPDX-License-Identifier: Apache-2.0
// Concat: the inputs side by side along one axis. ConcatTraining also says how long each is there.
#include "op/grad.h"
#include "ops/move/move.h"

// Two extents that must be the same: the more precise one; false when they differ.
static bool merge_extent(int64_t *y, int64_t x)
{
    if (ot_dim_is_number(*y) && ot_dim_is_number(x))
        return *y == x;
    if (ot_dim_is_number(x) || *y == ot_dim_unknown())
        *y = x;
    return true;
}

// Known elements: those of the inputs, where they have some.
static void infer_concat_values(ot_infer *c, int axis, const ot_shape *y)
{
    int64_t values[OT_MAX_KNOWN], count, from = 0;
    int n;

    if (!ot__shape_is_static(y) || !ot__shape_count(y, &count) || count == 0 ||
        count > OT_MAX_KNOWN)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = ot_dim_unknown();
    for (int i = 0; i < ot_infer_input_count(c); i++) {
        const ot_shape *x = ot_infer_shape(c, i);
        const int64_t *known = ot_infer_values(c, i, &n);
        ot__strided s;

        if (known != NULL && n > 0) {
            ot__part_strides(&s, NULL, x, y, axis, from, OT__PART_TO_WHOLE);
            s.size = sizeof(*known);
            ot__strided_simplify(&s);
            ot__ref_strided_copy(values, known, &s);
        }
        from += x->dim[axis];
    }
    ot_infer_set_values(c, 0, values, (int)count);
}

static bool infer_concat(ot_infer *c, int axis, ot_shape *y)
{
    *y = *ot_infer_shape(c, 0);
    for (int i = 1; i < ot_infer_input_count(c); i++) {
        const ot_shape *x = ot_infer_shape(c, i);

        if (x->ndim != y->ndim)
            return ot__refuse(c, "input %d has %d axes, input 0 has %d", i, x->ndim, y->ndim);
        for (int k = 0; k < y->ndim; k++) {
            if (k == axis) {
                const int64_t sum = ot_infer_add(c, y->dim[k], x->dim[k]);

                if (!ot__infer_extent(c, k, y->dim[k], x->dim[k], sum))
                    return false;
                y->dim[k] = sum;
            } else if (!merge_extent(&y->dim[k], x->dim[k])) {
                return ot__refuse(
                    c, "input %d has size %" PRId64 " at axis %d, the ones before %" PRId64, i,
                    x->dim[k], k, y->dim[k]);
            }
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), y);
    infer_concat_values(c, axis, y);
    return true;
}

static void concat_infer(ot_infer *c)
{
    const int n = ot_infer_input_count(c);
    int64_t lengths[OT_MAX_KNOWN];
    ot_shape y;
    int axis;

    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), ot_infer_shape(c, 0)->ndim,
                       &axis) ||
        !infer_concat(c, axis, &y))
        return;
    ot_infer_set(c, 1, OT_I64, &OT_SHAPE(n)); // of ConcatTraining
    for (int i = 0; i < n && n <= OT_MAX_KNOWN; i++)
        lengths[i] = ot_infer_shape(c, i)->dim[axis];
    ot_infer_set_values(c, 1, lengths, n);
}

// ---- kernel ----

typedef struct concat_state {
    int axis;
    ot__strided parts[]; // one per input
} concat_state;

// A layout that inputs are offered in, and how many elements are.
typedef struct offer {
    const ot_layout *layout;
    int64_t count;
} offer;

static int gather_offers(const ot_prep *p, offer *offers, int most)
{
    int n = 0;

    for (int i = 0; i < ot_prep_input_count(p); i++) {
        const ot_layout *layout = ot_prep_offered_in(p, i);
        int k = 0;

        while (k < n && !ot__layout_equal(offers[k].layout, layout))
            k++;
        if (k == most)
            continue;
        if (k == n)
            offers[n++] = (offer){layout, 0};
        offers[k].count += ot_prep_in(p, i)->count;
    }
    return n;
}

static bool all_fit(const ot_prep *p, const ot_layout *layout)
{
    for (int i = 0; i < ot_prep_input_count(p); i++)
        if (!ot__layout_fits(layout, &ot_prep_in(p, i)->shape))
            return false;
    return true;
}

// The layout in which the most elements are offered, of those that every input fits into.
static void concat_layouts(ot_prep *p)
{
    enum { MOST_OFFERS = 4 }; // row-major, and those of images
    offer offers[MOST_OFFERS], best = {0};
    const int n = gather_offers(p, offers, MOST_OFFERS);

    for (int k = 0; k < n; k++)
        if ((offers[k].count > best.count ||
             (offers[k].count == best.count && best.layout == NULL)) &&
            all_fit(p, offers[k].layout))
            best = offers[k];
    for (int i = 0; i < ot_prep_input_count(p); i++)
        ot_prep_want_in(p, i, best.layout);
    ot_prep_want_out(p, 0, best.layout);
}

static ot_status concat_prepare(ot_prep *p)
{
    const int n = ot_prep_input_count(p);
    const ot_arg *y = ot_prep_out(p, 0);
    concat_state *state = ot_prep_state(p, sizeof(*state) + (size_t)n * sizeof(ot__strided));
    int64_t from = 0;

    OT_TRY(ot__made(state));
    if (!ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), y->shape.ndim, &state->axis))
        return ot_prep_fail(p, OT_ERR_INVALID, "the axis is out of range");
    for (int i = 0; i < n; i++) {
        const ot_arg *x = ot_prep_in(p, i);
        ot__strided *s = &state->parts[i];

        ot__part_strides(s, y->layout, &x->shape, &y->shape, state->axis, from, OT__PART_TO_WHOLE);
        ot__strided_simplify(s);
        OT_TRY(ot__prep_element_size(p, x, &s->size));
        from += x->shape.dim[state->axis];
    }
    return OT_OK;
}

static ot_status concat_run(const ot_run *r, ot__strided_function copy)
{
    const concat_state *state = r->state;
    const ot_arg *lengths = r->n_out > 1 ? r->out[1] : NULL;

    for (int i = 0; i < r->n_in; i++) {
        copy(r->out[0]->data, r->in[i]->data, &state->parts[i]);
        if (lengths != NULL)
            ((int64_t *)lengths->data)[i] = r->in[i]->shape.dim[state->axis];
    }
    return OT_OK;
}

static ot_status concat_run_simd(const ot_run *r)
{
    return concat_run(r, ot__simd_strided_copy);
}

static ot_status concat_run_ref(const ot_run *r)
{
    return concat_run(r, ot__ref_strided_copy);
}

// ---- gradients: dX_i = the part of dY where X_i stands ----

// By `op`. Parts that nobody wants keep their output: ONNX Runtime's Split needs them all.
static void set_parts(ot_grad *g, const char *op, ot_value *sizes, int64_t axis)
{
    const int n = ot_grad_input_count(g);
    ot_value *const in[2] = {ot_grad_dy(g, 0), sizes};
    ot_node *split = ot_emit(g, op, NULL, in, 2, n);

    ot_emit_int(g, split, "axis", axis);
    for (int i = 0; i < n; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, split, i));
}

// Extents of the inputs along the axis: a constant when they are all numbers.
static ot_value *emit_sizes(ot_grad *g, int axis)
{
    const int n = ot_grad_input_count(g);
    ot__arena *arena = ot_grad_node(g)->graph->model->arena;
    int64_t *numbers = ot__arena_alloc(arena, (size_t)n * sizeof(*numbers));
    ot_value **sizes = ot__arena_alloc(arena, (size_t)n * sizeof(ot_value *));
    ot_value *index;
    bool is_static = true;

    if (numbers == NULL || sizes == NULL) {
        ot_grad_fail(g, "%s", ot_error_message());
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        const ot_value *x = ot_grad_x(g, i);

        numbers[i] = ot_value_has_shape(x) ? ot_value_shape(x)->dim[axis] : ot_dim_unknown();
        is_static = is_static && ot_dim_is_number(numbers[i]);
    }
    if (is_static)
        return ot_emit_constant_i64(g, numbers, n);
    index = ot_emit_constant_i64(g, &(int64_t){axis}, 1);
    for (int i = 0; i < n; i++)
        sizes[i] = ot_dim_is_number(numbers[i])
                       ? ot_emit_constant_i64(g, &numbers[i], 1)
                       : ot_emit2(g, "Gather", ot_emit_shape(g, ot_grad_x(g, i)), index);
    return ot_emit_output(g, ot_emit(g, "Concat", "axis = 0", sizes, n, 1), 0);
}

static void concat_grad(ot_grad *g)
{
    int axis = 0;

    if (!ot__grad_has_rank(g))
        return;
    ot__axis_normalize(ot_attr_int(ot_grad_node(g), "axis"), ot_value_shape(ot_grad_x(g, 0))->ndim,
                       &axis);
    set_parts(g, "Split", emit_sizes(g, axis), axis);
}

static void concat_training_grad(ot_grad *g)
{
    set_parts(g, "com.microsoft.SplitTraining", ot_grad_y(g, 1),
              ot_attr_int(ot_grad_node(g), "axis"));
}

// ---- records ----

static const ot_port concat_in[] = {{"inputs", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port concat_out[] = {{"concat_result", "T", 0}, {0}};
static const ot_port concat_training_out[] = {
    {"concat_result", "T", 0},
    {"per_input_length", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_attr_spec concat_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED}, {0}};
static const ot_kernel concat_kernels[] = {
    OT__STRIDED_LAYOUTS_KERNELS(concat_layouts, concat_prepare, concat_run), {0}};
#define CONCAT                                                                                     \
    .inputs = concat_in, .attrs = concat_attrs, .types = "T: any string", .infer = concat_infer,   \
    .kernels = concat_kernels
const ot_op_def ot__op_concat[] = {
    {.name = "Concat", .since = 4, .outputs = concat_out, .grad = concat_grad, CONCAT},
    {0},
};
const ot_op_def ot__op_concat_training[] = {
    {.domain = OT__MS,
     .name = "ConcatTraining",
     .since = 1,
     .outputs = concat_training_out,
     .grad = concat_training_grad,
     CONCAT},
    {0},
};
