// SPDX-License-Identifier: Apache-2.0
// Unique: the elements, or the slices along an axis, that differ from each other, in order or as
// they come; where each stands first, which one every element is, and how many are equal. How many
// there are only the elements say.
#include "ops/move/move.h"

enum { Y, INDICES, INVERSE, COUNTS }; // outputs

static void read_slices(const ot_node *node, const ot_shape *x, ot__slices *s)
{
    int axis = 0;

    s->outer = s->inner = 1;
    s->n = ot__dims_count(x->dim, x->ndim);
    if (!ot_attr_given(node, "axis") ||
        !ot__axis_normalize(ot_attr_int(node, "axis"), x->ndim, &axis))
        return;
    s->outer = ot__dims_count(x->dim, axis);
    s->n = x->dim[axis];
    s->inner = ot__dims_count(x->dim + axis + 1, x->ndim - axis - 1);
}

// How many differ of a constant's.
static int64_t count_unique(ot_infer *c, const ot_tensor *constant)
{
    ot__slices s = {ot_tensor_data_const(constant), ot_tensor_dtype(constant), 0, 0, 0};
    int64_t *order, count = ot_dim_unknown();

    read_slices(ot_infer_node(c), ot_tensor_shape(constant), &s);
    if (s.outer == 0 || s.inner == 0)
        return OT_MIN(s.n, 1); // all are equal
    order = ot__alloc_zero((size_t)s.n + 1, 2 * sizeof(*order));
    if (ot__infer_made(c, order != NULL))
        count = ot__ref_unique_sort(&s, order, order + s.n);
    ot__free(order);
    return count;
}

// How many there are by the shapes that a model states for outputs: what it says of one holds for
// all.
static int64_t stated_count(const ot_infer *c, int axis)
{
    int64_t count = ot_dim_unknown();

    count = ot__infer_stated_dim(c, Y, axis, count);
    count = ot__infer_stated_dim(c, INDICES, 0, count);
    return ot__infer_stated_dim(c, COUNTS, 0, count);
}

static void unique_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_tensor *constant = ot_infer_constant(c, 0);
    const ot_shape *x = ot_infer_shape(c, 0);
    const bool has_axis = ot_attr_given(node, "axis");
    ot_shape y = has_axis ? *x : (ot_shape){.ndim = 1};
    int64_t n = 1, count;
    int axis = 0;

    if (has_axis && !ot_infer_axis(c, ot_attr_int(node, "axis"), x->ndim, &axis))
        return;
    for (int k = 0; k < x->ndim; k++)
        if (!has_axis || k == axis)
            n = ot_infer_mul(c, n, x->dim[k]);
    count = constant != NULL ? count_unique(c, constant) : n == 0 ? 0 : stated_count(c, axis);
    y.dim[axis] = count;
    ot_infer_set(c, Y, ot_infer_dtype(c, 0), &y);
    ot_infer_set(c, INDICES, OT_I64, &OT_SHAPE(count));
    ot_infer_set(c, INVERSE, OT_I64, &OT_SHAPE(n));
    ot_infer_set(c, COUNTS, OT_I64, &OT_SHAPE(count));
}

typedef struct unique_state {
    ot__slices slices;
    bool is_sorted;
    size_t size;
} unique_state;

static ot_status unique_prep(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_arg *x = ot_prep_in(p, 0);
    unique_state *state = ot_prep_state(p, sizeof(*state));
    ot__slices *s;

    OT_TRY(ot__made(state));
    s = &state->slices;
    read_slices(node, &x->shape, s);
    s->dtype = x->dtype;
    if (x->count == 0) // without elements all slices are equal, and may be very many
        s->outer = s->inner = 0;
    else
        ot_prep_scratch(p, (size_t)(4 * s->n + s->outer * s->n) * sizeof(int64_t));
    state->is_sorted = ot_attr_int(node, "sorted") != 0;
    return ot__prep_element_size(p, x, &state->size);
}

static void copy_unique(const ot_run *r, const int64_t *first, int64_t count, int64_t *offset)
{
    const unique_state *state = r->state;
    const ot__slices *s = &state->slices;

    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t k = 0; k < count; k++)
            offset[o * count + k] = (o * s->n + first[k]) * s->inner;
    ot__ref_gather(r->out[Y]->data, r->in[0]->data, offset, s->outer * count, s->inner,
                   state->size);
}

static ot_status check_counted(const ot_run *r, int64_t count)
{
    for (int i = 0; i < r->n_out; i++)
        if (r->out[i] != NULL && i != INVERSE) {
            const ot_arg *y = r->out[i];
            const unique_state *state = r->state;
            const int64_t rest = i == Y ? state->slices.outer * state->slices.inner : 1;

            OT_TRY(
                ot__check_planned(count, "elements or slices differ", y->count / OT_MAX(rest, 1)));
        }
    return OT_OK;
}

// All slices are without elements: one group of them.
static ot_status run_empty(const ot_run *r)
{
    const unique_state *state = r->state;
    const int64_t n = state->slices.n;
    int64_t *indices = ot__run_out(r, INDICES), *inverse = ot__run_out(r, INVERSE);
    int64_t *counts = ot__run_out(r, COUNTS);

    for (int i = INDICES; i < r->n_out; i++)
        if (r->out[i] != NULL && i != INVERSE)
            OT_TRY(ot__check_planned(OT_MIN(n, 1), "slices differ", r->out[i]->count));
    if (n == 0)
        return OT_OK;
    if (indices != NULL)
        indices[0] = 0;
    if (counts != NULL)
        counts[0] = n;
    for (int64_t i = 0; inverse != NULL && i < n; i++)
        inverse[i] = 0;
    return OT_OK;
}

static ot_status unique_run(const ot_run *r)
{
    const unique_state *state = r->state;
    ot__slices s = state->slices;
    int64_t *order = r->scratch, *spare, *first, *group;
    int64_t *indices = ot__run_out(r, INDICES), *inverse = ot__run_out(r, INVERSE);
    int64_t *counts = ot__run_out(r, COUNTS), count;

    if (r->in[0]->count == 0)
        return run_empty(r);
    s.x = r->in[0]->data;
    spare = order + s.n;
    first = spare + s.n;
    group = first + s.n;
    count = ot__ref_unique_sort(&s, order, spare);
    OT_TRY(check_counted(r, count));
    ot__ref_unique_groups(&s, order, state->is_sorted, first, group, spare);
    if (ot__run_out(r, Y) != NULL)
        copy_unique(r, first, count, group + s.n);
    for (int64_t k = 0; k < count; k++) {
        if (indices != NULL)
            indices[k] = first[k];
        if (counts != NULL)
            counts[k] = 0;
    }
    for (int64_t i = 0; i < s.n; i++) {
        if (inverse != NULL)
            inverse[i] = group[i];
        if (counts != NULL)
            counts[group[i]]++;
    }
    return OT_OK;
}

static const ot_port unique_in[] = {{"X", "T", OT_PORT_NO_GRAD}, {0}};
static const ot_port unique_out[] = {{"Y", "T", 0},
                                     {"indices", "i64", OT_PORT_OPTIONAL},
                                     {"inverse_indices", "i64", OT_PORT_OPTIONAL},
                                     {"counts", "i64", OT_PORT_OPTIONAL},
                                     {0}};
static const ot_attr_spec unique_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT},
    OT__FLAG_ATTR("sorted", 1),
    {0},
};
static const ot_kernel unique_kernels[] = {OT__REF_KERNEL(NULL, unique_prep, unique_run), {0}};
const ot_op_def ot__op_unique[] = {
    {.name = "Unique",
     .since = 11,
     .inputs = unique_in,
     .outputs = unique_out,
     .attrs = unique_attrs,
     .types = "T: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool",
     .infer = unique_infer,
     .kernels = unique_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
