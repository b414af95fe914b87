// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: shapes and kernels of their records.
#include <string.h>

#include "ops/move/move.h"
#include "ops/recurrent/recurrent.h"

// What a layer is made of, as extents; known or not.
typedef struct extents {
    int64_t steps, batch, inputs, hidden, gates, directions;
    int64_t table; // X's rows, where `has_indices`
    bool batch_first, has_indices, batch_first_indices;
} extents;

static const char *const role_names[OT__N_RR] = {
    [OT__RR_X] = "X",
    [OT__RR_INDICES] = "indices",
    [OT__RR_W] = "W",
    [OT__RR_R] = "R",
    [OT__RR_B] = "B",
    [OT__RR_LENGTHS] = "sequence_lens",
    [OT__RR_H0] = "initial_h",
    [OT__RR_C0] = "initial_c",
    [OT__RR_P] = "P",
    [OT__RR_Y] = "Y",
    [OT__RR_Y_H] = "Y_h",
    [OT__RR_Y_C] = "Y_c",
    [OT__RR_CELLS] = "the cell states",
    [OT__RR_GATES] = "the gates",
    [OT__RR_DY] = "the gradient of Y",
    [OT__RR_DY_H] = "the gradient of Y_h",
    [OT__RR_DY_C] = "the gradient of Y_c",
};

int ot__recurrent_port(const ot__recurrent_role *roles, ot__recurrent_role role)
{
    for (int i = 0; i < OT__N_RR && roles[i] != OT__RR_NONE; i++)
        if (roles[i] == role)
            return i;
    return -1;
}

// ---- shapes ----

static ot_shape per_step(const extents *e, int64_t width)
{
    return e->batch_first ? OT_SHAPE(e->batch, e->steps, e->directions, width)
                          : OT_SHAPE(e->steps, e->directions, e->batch, width);
}

static ot_shape shape_of(ot_infer *c, const extents *e, ot__recurrent_role role)
{
    const int64_t gates = ot_infer_mul(c, e->hidden, e->gates);

    switch (role) {
    case OT__RR_INDICES:
        return e->batch_first_indices ? OT_SHAPE(e->batch, e->steps) : OT_SHAPE(e->steps, e->batch);
    case OT__RR_X:
        if (e->has_indices)
            return OT_SHAPE(e->table, e->inputs);
        return e->batch_first ? OT_SHAPE(e->batch, e->steps, e->inputs)
                              : OT_SHAPE(e->steps, e->batch, e->inputs);
    case OT__RR_W:
        return OT_SHAPE(e->directions, gates, e->inputs);
    case OT__RR_R:
        return OT_SHAPE(e->directions, gates, e->hidden);
    case OT__RR_B:
        return OT_SHAPE(e->directions, ot_infer_mul(c, gates, 2));
    case OT__RR_LENGTHS:
        return OT_SHAPE(e->batch);
    case OT__RR_P:
        return OT_SHAPE(e->directions, ot_infer_mul(c, e->hidden, 3));
    case OT__RR_Y:
    case OT__RR_DY:
    case OT__RR_CELLS:
        return per_step(e, e->hidden);
    case OT__RR_GATES:
        return per_step(e, gates);
    default:
        return e->batch_first ? OT_SHAPE(e->batch, e->directions, e->hidden)
                              : OT_SHAPE(e->directions, e->batch, e->hidden);
    }
}

static void settle_extent(int64_t *extent, int64_t found)
{
    if (!ot_dim_is_number(*extent) && (ot_dim_is_number(found) || *extent == ot_dim_unknown()))
        *extent = found;
}

static bool has_layer_input(const ot_infer *c, const ot__recurrent_op *op, ot__recurrent_role role)
{
    const int i = ot__recurrent_port(op->in, role);

    return i >= 0 && ot_infer_has(c, i);
}

// Of the steps and the batch: from X or, where that is a table, from the indices.
static bool read_sequence_extents(ot_infer *c, const ot__recurrent_op *op, extents *e)
{
    const ot_node *node = ot_infer_node(c);
    const bool has_indices = has_layer_input(c, op, OT__RR_INDICES);
    const ot__recurrent_role role = has_indices ? OT__RR_INDICES : OT__RR_X;
    const bool batch_first = ot_attr_int(node, has_indices ? "indices_layout" : "layout") == 1;
    const ot_shape *x = ot_infer_shape(c, ot__recurrent_port(op->in, OT__RR_X));
    const ot_shape *sequence = ot_infer_shape(c, ot__recurrent_port(op->in, role));

    if (has_indices && (x->ndim != 2 || sequence->ndim != 2))
        return ot__refuse(c, "X and indices have %d and %d axes, expected 2", x->ndim,
                          sequence->ndim);
    if (!has_indices && x->ndim != 3)
        return ot__refuse(c, "X has %d axes, expected 3", x->ndim);
    e->has_indices = has_indices;
    e->batch_first = !has_indices && batch_first;
    e->batch_first_indices = has_indices && batch_first;
    e->table = x->dim[0];
    e->steps = sequence->dim[batch_first ? 1 : 0];
    e->batch = sequence->dim[batch_first ? 0 : 1];
    e->inputs = x->dim[x->ndim - 1];
    return true;
}

static bool read_layer_extents(ot_infer *c, const ot__recurrent_op *op, const ot__recurrent *p,
                               extents *e)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *w = ot_infer_shape(c, ot__recurrent_port(op->in, OT__RR_W));
    const ot_shape *r = ot_infer_shape(c, ot__recurrent_port(op->in, OT__RR_R));

    if (w->ndim != 3 || r->ndim != 3)
        return ot__refuse(c, "W and R have %d and %d axes, expected 3", w->ndim, r->ndim);
    *e = (extents){.hidden = ot_attr_given(node, "hidden_size") ? ot_attr_int(node, "hidden_size")
                                                                : r->dim[2],
                   .gates = p->n_gates,
                   .directions = p->n_directions};
    if (!read_sequence_extents(c, op, e))
        return false;
    settle_extent(&e->inputs, w->dim[2]);
    return true;
}

static bool check_layer_input(ot_infer *c, const extents *e, int i, ot__recurrent_role role)
{
    const ot_shape *found = ot_infer_shape(c, i), expected = shape_of(c, e, role);

    if (found->ndim != expected.ndim)
        return ot__refuse(c, "%s has %d axes, expected %d", role_names[role], found->ndim,
                          expected.ndim);
    for (int k = 0; k < found->ndim; k++)
        if (ot__dim_differs(found->dim[k], expected.dim[k]))
            return ot__refuse(c, "%s has %" PRId64 " elements along axis %d, expected %" PRId64,
                              role_names[role], found->dim[k], k, expected.dim[k]);
    return true;
}

void ot__recurrent_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    ot__recurrent p = {.cell = ot__recurrent_cell(node->op)};
    const char *why = ot__recurrent_read(node, &p);
    ot__recurrent_op op;
    extents e;

    ot__recurrent_op_read(node->op, &op);
    if (why == NULL && op.is_plain_only &&
        (!ot__recurrent_is_plain(&p) || has_layer_input(c, &op, OT__RR_LENGTHS) ||
         has_layer_input(c, &op, OT__RR_P)))
        why = "only the forward direction, the default activations, no clip, no coupled gates and "
              "no sequence_lens or peepholes are defined";
    if (why != NULL) {
        ot_infer_fail(c, "%s", why);
        return;
    }
    if (!read_layer_extents(c, &op, &p, &e))
        return;
    for (int i = 0; op.in[i] != OT__RR_NONE; i++)
        if (ot_infer_has(c, i) && !check_layer_input(c, &e, i, op.in[i]))
            return;
    for (int i = 0; op.out[i] != OT__RR_NONE; i++) {
        const ot_shape shape = shape_of(c, &e, op.out[i]);
        ot_infer_set(c, i, ot_infer_dtype(c, 0), &shape);
    }
}

// ---- kernels ----

static const ot_arg *run_input(const ot_run *r, const ot__recurrent_op *op, ot__recurrent_role role)
{
    const int i = ot__recurrent_port(op->in, role);

    return i >= 0 && i < r->n_in ? r->in[i] : NULL;
}

static const void *input_data(const ot_run *r, const ot__recurrent_op *op, ot__recurrent_role role)
{
    const ot_arg *x = run_input(r, op, role);

    return x == NULL ? NULL : x->data;
}

static void *output_data(const ot_run *r, const ot__recurrent_op *op, ot__recurrent_role role)
{
    const int i = ot__recurrent_port(op->out, role);

    return i >= 0 && i < r->n_out && r->out[i] != NULL ? r->out[i]->data : NULL;
}

static void set_distances(ot__recurrent *p, bool batch_first)
{
    const int64_t states = p->n_directions * p->hidden;

    p->x_step = batch_first ? p->inputs : p->batch * p->inputs;
    p->x_row = batch_first ? p->steps * p->inputs : p->inputs;
    p->y_step = batch_first ? states : p->batch * states;
    p->y_row = batch_first ? p->steps * states : p->hidden;
    p->y_direction = batch_first ? p->hidden : p->batch * p->hidden;
    p->state_row = batch_first ? states : p->hidden;
    p->state_direction = batch_first ? p->hidden : p->batch * p->hidden;
}

const ot_arg *ot__recurrent_indices(const ot_prep *p)
{
    ot__recurrent_op op;
    int i;

    ot__recurrent_op_read(ot_prep_node(p)->op, &op);
    i = ot__recurrent_port(op.in, OT__RR_INDICES);
    return i >= 0 && i < p->n_in ? p->in[i] : NULL;
}

ot_status ot__recurrent_ask_for_scratch(ot_prep *p, int64_t n_elements)
{
    const size_t size = OT_MAX(ot_dtype_size(ot_prep_in(p, 0)->dtype), sizeof(float));
    const ot_arg *indices = ot__recurrent_indices(p);
    const size_t n_rows = indices == NULL ? 0 : (size_t)indices->count;
    ot__recurrent_state *state = p->state;
    size_t n_bytes;

    if (n_elements < 0 || ot__size_mul_overflows((size_t)n_elements, size, &n_bytes) ||
        n_bytes > SIZE_MAX / 4 || n_rows > SIZE_MAX / 8 / sizeof(int64_t))
        return ot_prep_fail(p, OT_ERR_INVALID, "the layer is too large");
    state->rows_at = (n_bytes + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
    ot_prep_scratch(p, state->rows_at +
                           (state->batch_first_indices ? 2 : 1) * n_rows * sizeof(int64_t));
    return OT_OK;
}

ot_status ot__recurrent_prepare_state(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_arg *indices = ot__recurrent_indices(p);
    const bool batch_first = ot_attr_int(node, indices ? "indices_layout" : "layout") == 1;
    ot__recurrent_state *state = ot_prep_state(p, sizeof *state);
    const ot_arg *w, *r;
    const ot_shape *x, *sequence;

    OT_TRY(ot__made(state));
    ot__recurrent_op_read(node->op, &state->op);
    x = &ot_prep_in(p, ot__recurrent_port(state->op.in, OT__RR_X))->shape;
    sequence = indices == NULL ? x : &indices->shape;
    w = ot_prep_in(p, ot__recurrent_port(state->op.in, OT__RR_W));
    r = ot_prep_in(p, ot__recurrent_port(state->op.in, OT__RR_R));
    state->p = (ot__recurrent){.cell = state->op.cell,
                               .steps = sequence->dim[batch_first ? 1 : 0],
                               .batch = sequence->dim[batch_first ? 0 : 1],
                               .inputs = x->dim[x->ndim - 1],
                               .table = indices == NULL ? 0 : x->dim[0],
                               .hidden = r->shape.dim[2]};
    (void)ot__recurrent_read(node, &state->p); // inference has seen that it makes sense
    state->batch_first_indices = indices != NULL && batch_first;
    set_distances(&state->p, indices == NULL && batch_first);
    state->by = (ot__recurrent_means){.kernel = ot__gemm_kernel_best(),
                                      .cells = ot__cells_best(),
                                      .n_threads = ot_prep_threads(p),
                                      .w_type = w->dtype,
                                      .r_type = r->dtype};
    return OT_OK;
}

static ot_status recurrent_prepare(ot_prep *p)
{
    OT_TRY(ot__recurrent_prepare_state(p));
    return ot__recurrent_ask_for_scratch(
        p, ot__recurrent_scratch(&((const ot__recurrent_state *)p->state)->p));
}

static ot_status recurrent_grad_prepare(ot_prep *p)
{
    OT_TRY(ot__recurrent_prepare_state(p));
    return ot__recurrent_ask_for_scratch(
        p, ot__recurrent_grad_scratch(&((const ot__recurrent_state *)p->state)->p));
}

static ot_status recurrent_prepare_simd(ot_prep *p)
{
    const ot__recurrent_state *state;
    int gates;

    OT_TRY(ot__recurrent_prepare_state(p));
    state = p->state;
    gates = ot__recurrent_port(state->op.out, OT__RR_GATES);
    return ot__recurrent_ask_for_scratch(
        p, ot__simd_recurrent_scratch(&state->p, &state->by,
                                      gates >= 0 && gates < p->n_out && p->out[gates] != NULL));
}

static ot_status recurrent_grad_prepare_simd(ot_prep *p)
{
    const ot__recurrent_state *state;

    OT_TRY(ot__recurrent_prepare_state(p));
    state = p->state;
    return ot__recurrent_ask_for_scratch(p, ot__simd_recurrent_grad_scratch(&state->p, &state->by));
}

static bool recurrent_has_elements(const ot_prep *p)
{
    const ot_arg *indices = ot__recurrent_indices(p);

    return ot_prep_in(p, 0)->count > 0 && ot_prep_in(p, 2)->count > 0 && // X and R
           (indices == NULL || indices->count > 0);
}

// The rows (steps, batch) that indices name, in scratch; NULL: X is no table.
static ot_status rows_of_indices(const ot_run *r, const ot__recurrent_state *state,
                                 const int64_t **rows)
{
    const ot__recurrent *p = &state->p;
    const ot_arg *indices = run_input(r, &state->op, OT__RR_INDICES);
    int64_t *found = (int64_t *)(void *)((char *)r->scratch + state->rows_at), *by_steps, bad;

    *rows = NULL;
    if (indices == NULL)
        return OT_OK;
    bad = ot__ref_index_axis(found, indices->data, ot_dtype_size(indices->dtype), 1, p->table,
                             indices->count, 1);
    if (bad >= 0)
        return ot__index_error(indices, bad, p->table);
    *rows = found;
    if (!state->batch_first_indices)
        return OT_OK;
    by_steps = found + indices->count;
    for (int64_t step = 0; step < p->steps; step++)
        for (int64_t row = 0; row < p->batch; row++)
            by_steps[step * p->batch + row] = found[row * p->steps + step];
    *rows = by_steps;
    return OT_OK;
}

ot_status ot__recurrent_check_lengths(const int32_t *lengths, const ot__recurrent *p)
{
    for (int64_t i = 0; lengths != NULL && i < p->batch; i++)
        if (lengths[i] < 0 || lengths[i] > p->steps)
            return ot__error(OT_ERR_INVALID,
                             "sequence_lens has %d for row %" PRId64 ", expected 0 to %" PRId64,
                             (int)lengths[i], i, p->steps);
    return OT_OK;
}

#define TEMPLATE "ops/recurrent/recurrent.tmpl.h"
#include "kernels/by_float.tmpl.h"

static void recurrent_by_simd(const ot__recurrent_data_f32 *d, const ot__recurrent_state *state)
{
    ot__simd_recurrent(d, &state->p, &state->by);
}

static void recurrent_grad_by_simd(const ot__recurrent_grad_f32 *d,
                                   const ot__recurrent_state *state)
{
    ot__simd_recurrent_grad(d, &state->p, &state->by);
}

static ot_status recurrent_run_simd(const ot_run *r)
{
    return recurrent_run_f32(r, recurrent_by_simd);
}

static ot_status recurrent_grad_run_simd(const ot_run *r)
{
    return recurrent_grad_run_f32(r, recurrent_grad_by_simd);
}

const ot_kernel ot__recurrent_kernels[] = {
    OT__SIMD_KERNEL("T: f32", recurrent_has_elements, recurrent_prepare_simd, recurrent_run_simd),
    OT__SIMD_FLOATS_KERNEL(ot__recurrent_can_piecewise, ot__recurrent_piecewise_prepare,
                           ot__recurrent_piecewise_run),
    OT__REF_KERNELS(recurrent_prepare, recurrent_run_ref),
    {0},
};
const ot_kernel ot__recurrent_grad_kernels[] = {
    OT__SIMD_KERNEL("T: f32", recurrent_has_elements, recurrent_grad_prepare_simd,
                    recurrent_grad_run_simd),
    OT__SIMD_FLOATS_KERNEL(ot__recurrent_can_piecewise, ot__recurrent_piecewise_grad_prepare,
                           ot__recurrent_piecewise_grad_run),
    OT__REF_KERNELS(recurrent_grad_prepare, recurrent_grad_run_ref),
    {0},
};
