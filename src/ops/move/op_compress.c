// SPDX-License-Identifier: Apache-2.0
// Compress: the slices along an axis, or the elements, for which a condition holds. How many there
// are only the condition's elements say.
#include "op/expand.h"
#include "ops/move/move.h"

enum { INPUT, CONDITION }; // inputs

// How many elements of the condition are true, as far as they are known.
static int64_t infer_chosen(ot_infer *c)
{
    const ot_tensor *constant = ot_infer_constant(c, CONDITION);
    int n;
    const int64_t *known = ot_infer_values(c, CONDITION, &n);
    int64_t count = 0;

    if (constant != NULL)
        return ot__ref_count_true(ot_tensor_data_const(constant), ot_tensor_count(constant));
    if (known == NULL || !ot__all_numbers(known, n))
        return ot_dim_unknown();
    for (int i = 0; i < n; i++)
        count += known[i] != 0;
    return count;
}

static void compress_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *x = ot_infer_shape(c, INPUT), *condition = ot_infer_shape(c, CONDITION);
    const bool has_axis = ot_attr_given(node, "axis");
    ot_shape y = has_axis ? *x : (ot_shape){.ndim = 1};
    int64_t extent = 1;
    int axis = 0;

    if (has_axis && !ot_infer_axis(c, ot_attr_int(node, "axis"), x->ndim, &axis))
        return;
    if (condition->ndim != 1) {
        ot_infer_fail(c, "condition has %d axes, expected 1", condition->ndim);
        return;
    }
    for (int k = 0; k < x->ndim; k++)
        if (!has_axis || k == axis)
            extent = ot_infer_mul(c, extent, x->dim[k]);
    if (ot_dim_is_number(extent) && ot_dim_is_number(condition->dim[0]) &&
        condition->dim[0] > extent) {
        ot_infer_fail(c, "condition has %" PRId64 " elements, of %" PRId64 " to choose from",
                      condition->dim[0], extent);
        return;
    }
    y.dim[axis] = infer_chosen(c);
    ot_infer_set(c, 0, ot_infer_dtype(c, INPUT), &y);
}

typedef struct compress_state {
    int64_t outer, extent, inner; // of the input, around the axis
    int64_t planned;              // to be chosen
    size_t size;
} compress_state;

static ot_status compress_prep(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_arg *x = ot_prep_in(p, INPUT), *y = ot_prep_out(p, 0);
    compress_state *state = ot_prep_state(p, sizeof(*state));
    int axis = 0;

    OT_TRY(ot__made(state));
    if (ot_attr_given(node, "axis"))
        (void)ot__axis_normalize(ot_attr_int(node, "axis"), x->shape.ndim, &axis);
    state->planned = y->shape.dim[axis];
    if (y->count > 0 && ot_attr_given(node, "axis")) {
        state->outer = ot__dims_count(x->shape.dim, axis);
        state->extent = x->shape.dim[axis];
        state->inner = ot__dims_count(x->shape.dim + axis + 1, x->shape.ndim - axis - 1);
    } else if (y->count > 0) {
        state->outer = state->inner = 1;
        state->extent = x->count;
    }
    ot_prep_scratch(p, (size_t)(state->outer * state->planned) * sizeof(int64_t));
    return ot__prep_element_size(p, y, &state->size);
}

static ot_status compress_run(const ot_run *r)
{
    const compress_state *state = r->state;
    const ot_arg *condition = r->in[CONDITION], *y = r->out[0];

    OT_TRY(ot__check_planned(ot__ref_count_true(condition->data, condition->count),
                             "elements of condition are true", state->planned));
    if (y->count == 0)
        return OT_OK;
    ot__ref_true_offsets(r->scratch, condition->data, condition->count, state->outer, state->extent,
                         state->inner);
    ot__ref_gather(y->data, r->in[INPUT]->data, r->scratch, state->outer * state->planned,
                   state->inner, state->size);
    return OT_OK;
}

// ---- gradient ----

// Where in dY, with a slice of zeros in front, the slices of X stand: 0 for those not chosen. The
// condition may be shorter than the axis.
static ot_value *emit_places(ot_grad *g, ot_value *extent)
{
    const int64_t zero = 0;
    ot_value *condition = ot_emit_cast(g, ot_grad_x(g, CONDITION), OT_I64), *places, *pads[2];
    const ot_shape *given = condition == NULL ? NULL : ot_value_shape(condition);
    int n;
    const int64_t *known = extent == NULL ? NULL : ot_value_known(extent, &n);

    places = ot__emit_at(g, ot_emit_constant_i64(g, &zero, 1), 0);
    places = ot_emit2(g, "CumSum", condition, places);
    places = ot_emit2(g, "Mul", places, condition);
    if (given != NULL && known != NULL && n == 1 && known[0] == given->dim[0])
        return places;
    pads[0] = ot_emit_constant_i64(g, &zero, 1);
    pads[1] = condition == NULL ? NULL : ot__emit_extents(g, condition, 0, 1);
    pads[1] = ot_emit2(g, "Sub", extent, pads[1]);
    return ot_emit2(g, "Pad", places, ot__emit_concat(g, pads, 2, 0));
}

// dX = dY's slices where they were taken from, else zeros.
static void compress_grad(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    const bool has_axis = ot_attr_given(node, "axis");
    const int64_t flat = -1;
    ot_value *x = ot_grad_x(g, INPUT), *dy = ot_grad_dy(g, 0), *extent, *in[2];
    int64_t pads[2 * OT_MAX_NDIM] = {0};
    ot_node *gather;
    int axis = 0, ndim = 1;

    if (!ot__grad_has_rank(g))
        return;
    if (has_axis) {
        ndim = ot_value_shape(x)->ndim;
        (void)ot__axis_normalize(ot_attr_int(node, "axis"), ndim, &axis);
        extent = ot__emit_extents(g, x, axis, axis + 1);
    } else {
        extent = ot__emit_reshape(g, ot_emit1(g, "Size", x), &flat, 1);
    }
    in[1] = emit_places(g, extent);
    pads[axis] = 1;
    in[0] = ot_emit2(g, "Pad", dy, ot_emit_constant_i64(g, pads, 2 * ndim));
    if (in[0] == NULL || in[1] == NULL)
        return;
    gather = ot_emit(g, "Gather", NULL, in, 2, 1);
    ot_emit_int(g, gather, "axis", axis);
    ot_grad_set_dx(g, INPUT, ot_emit_reshape_like(g, ot_emit_output(g, gather, 0), x));
}

static const ot_port compress_in[] = {
    {"input", "T", 0}, {"condition", "bool", OT_PORT_NO_GRAD}, {0}};
static const ot_attr_spec compress_attrs[] = {{.name = "axis", .kind = OT_ATTRIBUTE_INT}, {0}};
static const ot_kernel compress_kernels[] = {OT__REF_KERNEL(NULL, compress_prep, compress_run),
                                             {0}};
const ot_op_def ot__op_compress[] = {
    {.name = "Compress",
     .since = 9,
     .inputs = compress_in,
     .outputs = ot__output_out,
     .attrs = compress_attrs,
     .types = "T: any string",
     .infer = compress_infer,
     .kernels = compress_kernels,
     .grad = compress_grad},
    {0},
};
