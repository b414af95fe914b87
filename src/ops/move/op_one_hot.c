// SPDX-License-Identifier: Apache-2.0
// OneHot: each index becomes a line of `depth` elements, one value at the index and another
// elsewhere; an index out of range has no such element.
#include "op/expand.h"
#include "ops/move/move.h"

enum { INDICES, DEPTH, VALUES }; // inputs

// The size of the new axis, as far as it is known; false: the context has the error.
static bool infer_depth(ot_infer *c, int64_t *depth)
{
    const ot_tensor *constant = ot_infer_constant(c, DEPTH);
    int n;
    const int64_t *known = ot_infer_values(c, DEPTH, &n);

    *depth = known != NULL && n == 1 ? known[0] : ot_dim_unknown();
    if (constant != NULL && ot_tensor_count(constant) == 1 &&
        !ot__convert(depth, OT_I64, ot_tensor_data_const(constant), ot_tensor_dtype(constant), 1))
        return ot__refuse(c, "depth cannot be read");
    if (constant != NULL && *depth < 0)
        return ot__refuse(c, "depth is %" PRId64 ", expected 0 or more", *depth);
    return true;
}

static void one_hot_infer(ot_infer *c)
{
    const ot_shape *indices = ot_infer_shape(c, INDICES), *values = ot_infer_shape(c, VALUES);
    ot_shape y = {.ndim = indices->ndim + 1};
    int64_t depth;
    int axis;

    if (y.ndim > OT_MAX_NDIM) {
        ot_infer_fail(c, "the result has more than %d axes", OT_MAX_NDIM);
        return;
    }
    if (values->ndim != 1 || (ot_dim_is_number(values->dim[0]) && values->dim[0] != 2)) {
        ot_infer_fail(c, "values must be a list of 2, the one elsewhere and the one at the index");
        return;
    }
    if (!ot__infer_one_element(c, DEPTH) || !infer_depth(c, &depth) ||
        !ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), y.ndim, &axis))
        return;
    for (int k = 0; k < y.ndim; k++)
        y.dim[k] = k < axis ? indices->dim[k] : k == axis ? depth : indices->dim[k - 1];
    ot_infer_set(c, 0, ot_infer_dtype(c, VALUES), &y);
}

typedef struct one_hot_state {
    int64_t outer, inner; // of the indices, around the new axis
    size_t size;
} one_hot_state;

static ot_status one_hot_prep(ot_prep *p)
{
    const ot_arg *indices = ot_prep_in(p, INDICES);
    one_hot_state *state = ot_prep_state(p, sizeof(*state));
    int axis = 0;

    OT_TRY(ot__made(state));
    (void)ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), indices->shape.ndim + 1, &axis);
    if (indices->count > 0) {
        state->outer = ot__dims_count(indices->shape.dim, axis);
        state->inner = ot__dims_count(indices->shape.dim + axis, indices->shape.ndim - axis);
    }
    if (indices->dtype != OT_I64)
        ot_prep_scratch(p, (size_t)indices->count * sizeof(int64_t));
    return ot__prep_element_size(p, ot_prep_out(p, 0), &state->size);
}

// The indices as i64; those that i64 does not have are beyond any depth.
static const int64_t *read_indices(const ot_run *r)
{
    const ot_arg *indices = r->in[INDICES];
    int64_t *index = r->scratch;

    if (indices->dtype == OT_I64)
        return indices->data;
    ot__convert(index, OT_I64, indices->data, indices->dtype, indices->count);
    for (int64_t i = 0; indices->dtype == OT_U64 && i < indices->count; i++)
        index[i] = index[i] < 0 ? INT64_MAX : index[i];
    return index;
}

static ot_status one_hot_run(const ot_run *r)
{
    const one_hot_state *state = r->state;
    const ot_arg *depth = r->in[DEPTH], *values = r->in[VALUES], *y = r->out[0];
    const int64_t lines = state->outer * state->inner;
    int64_t n;

    if (depth->count != 1 || values->count != 2)
        return ot__error(OT_ERR_INVALID,
                         "depth has %" PRId64 " elements and values %" PRId64 ", expected 1 and 2",
                         depth->count, values->count);
    ot__convert(&n, OT_I64, depth->data, depth->dtype, 1);
    if (lines == 0)
        return OT_OK;
    OT_TRY(ot__check_planned(n, "classes", y->count / lines));
    ot__ref_one_hot(y->data, read_indices(r), values->data,
                    (const char *)values->data + state->size, state->outer, n, state->inner,
                    state->size);
    return OT_OK;
}

// The sum of dY's elements where the value numbered `which` is, as a list.
static ot_value *emit_sum_of(ot_grad *g, int which)
{
    const double mask[2] = {which == 0, which == 1};
    const int64_t one = 1;
    ot_value *dy = ot_grad_dy(g, 0), *in[3] = {ot_grad_x(g, INDICES), ot_grad_x(g, DEPTH), NULL};
    ot_node *node;

    in[2] = ot__emit_tensor(g, ot_value_dtype(dy), &OT_SHAPE(2));
    if (in[2] == NULL)
        return NULL;
    ot__convert(in[2]->constant->data, ot_value_dtype(dy), mask, OT_F64, 2);
    node = ot_emit(g, "OneHot", NULL, in, 3, 1);
    ot_emit_forward_attrs(g, node);
    dy = ot_emit2(g, "Mul", dy, ot_emit_output(g, node, 0));
    dy = dy == NULL ? NULL
                    : ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 0", &dy, 1, 1), 0);
    return ot__emit_reshape(g, dy, &one, 1);
}

// d values = the sums of dY where each of the two stands.
static void one_hot_grad(ot_grad *g)
{
    ot_value *parts[2];

    for (int i = 0; i < 2; i++)
        parts[i] = emit_sum_of(g, i);
    ot_grad_set_dx(g, VALUES, ot__emit_concat(g, parts, 2, 0));
}

#define NUMBERS "u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64"
static const ot_port one_hot_in[] = {
    {"indices", "T1", OT_PORT_NO_GRAD}, {"depth", "T2", OT_PORT_NO_GRAD}, {"values", "T3", 0}, {0}};
static const ot_port one_hot_out[] = {{"output", "T3", 0}, {0}};
static const ot_attr_spec one_hot_attrs[] = {OT__INT_ATTR("axis", -1), {0}};
static const ot_kernel one_hot_kernels[] = {OT__REF_KERNEL(NULL, one_hot_prep, one_hot_run), {0}};
const ot_op_def ot__op_one_hot[] = {
    {.name = "OneHot",
     .since = 9,
     .inputs = one_hot_in,
     .outputs = one_hot_out,
     .attrs = one_hot_attrs,
     .types = "T1: " NUMBERS "; T2: " NUMBERS "; T3: any string",
     .infer = one_hot_infer,
     .kernels = one_hot_kernels,
     .grad = one_hot_grad},
    {0},
};
