// SPDX-License-Identifier: Apache-2.0
// Reductions: shapes and kernels of the Reduce* records.
#include "ops/reduce/reduction.h"

const ot_port ot__reduce_in_1[] = {{"data", "T", 0}, {0}};
const ot_port ot__reduce_in[] = {
    {"data", "T", 0}, {"axes", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
const ot_port ot__reduce_out[] = {{"reduced", "T", 0}, {0}};
const ot_attr_spec ot__reduce_attrs_1[] = {
    {.name = "axes", .kind = OT_ATTRIBUTE_INTS},
    {.name = "keepdims", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1},
    {0},
};
const ot_attr_spec ot__reduce_attrs[] = {
    {.name = "keepdims", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1},
    {.name = "noop_with_empty_axes",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_HAS_DEFAULT,
     .i = 0},
    {0},
};

void ot__reduce_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "axes", 1);
}

// No axes at all mean all of them, unless the node says that they mean none.
static void settle_empty(const ot_node *node, int ndim, ot__axes *axes)
{
    if (axes->n > 0 || ot_attr_int(node, "noop_with_empty_axes") != 0)
        return;
    for (int k = 0; k < ndim; k++)
        axes->has[k] = true;
    axes->n = ndim;
}

// ---- shapes ----

void ot__infer_reduce(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *x = ot_infer_shape(c, 0);
    const bool keeps = ot_attr_int(node, "keepdims") != 0;
    ot_shape y = {0};
    ot__axes axes;
    const ot__given given = ot__infer_axes(c, "axes", 1, x->ndim, &axes);

    if (given == OT__FAILED)
        return;
    if (given == OT__UNKNOWN && !keeps) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
        return;
    }
    if (given != OT__UNKNOWN)
        settle_empty(node, x->ndim, &axes);
    for (int k = 0; k < x->ndim; k++) {
        if (given == OT__UNKNOWN)
            y.dim[y.ndim++] = x->dim[k] == 1 ? 1 : ot_dim_unknown();
        else if (!axes.has[k])
            y.dim[y.ndim++] = x->dim[k];
        else if (keeps)
            y.dim[y.ndim++] = 1;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

void ot__infer_reduce_known(ot_infer *c, int64_t (*fold)(ot_infer *c, int64_t a, int64_t b))
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int n;
    const int64_t *known = ot_infer_values(c, 0, &n);
    int64_t total;
    ot__axes axes;
    const ot__given given = ot__infer_axes(c, "axes", 1, x->ndim, &axes);

    ot__infer_reduce(c);
    if (known == NULL || n == 0 || given == OT__UNKNOWN || given == OT__FAILED)
        return;
    settle_empty(ot_infer_node(c), x->ndim, &axes);
    if (axes.n != x->ndim)
        return;
    total = known[0];
    for (int k = 1; k < n; k++)
        total = fold(c, total, known[k]);
    ot_infer_set_values(c, 0, &total, 1);
}

// ---- kernels ----

typedef struct reduce_state {
    ot__reduction reduction;
    ot__reduce_function function;
    ot__reduce_op op;
    bool is_ready; // false: the axes are read in every run
    bool empty_is_none;
} reduce_state;

ot_status ot__prep_reduce(ot_prep *p, ot__reduce_op op)
{
    const ot_arg *x = ot_prep_in(p, 0);
    reduce_state *state = ot_prep_state(p, sizeof(*state));
    ot__axes axes;
    ot__given given;

    if (state == NULL)
        return OT_ERR_NO_MEMORY;
    state->op = op;
    state->function = ot__ref_reduce_find(x->dtype, op);
    if (state->function == NULL)
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "elements of type %s cannot be reduced so",
                            ot_dtype_name(x->dtype));
    given = ot__prep_axes(p, "axes", 1, x->shape.ndim, &axes);
    if (given == OT__FAILED)
        return p->status;
    state->empty_is_none = ot_attr_int(ot_prep_node(p), "noop_with_empty_axes") != 0;
    state->is_ready = given != OT__UNKNOWN;
    if (state->is_ready) {
        settle_empty(ot_prep_node(p), x->shape.ndim, &axes);
        ot__reduction_init(&state->reduction, &x->shape, axes.has);
    }
    return OT_OK;
}

static ot_status read_axes(const ot_run *r, const reduce_state *state, ot__reduction *reduction)
{
    const ot_shape *x = &r->in[0]->shape;
    ot__axes axes;

    OT_TRY(ot__run_axes(r->in[1], x->ndim, &axes));
    for (int k = 0; k < x->ndim && axes.n == 0; k++)
        axes.has[k] = !state->empty_is_none;
    ot__reduction_init(reduction, x, axes.has);
    return reduction->n_out == r->out[0]->count
               ? OT_OK
               : ot__error(OT_ERR_INVALID,
                           "the axes give %" PRId64 " elements, %" PRId64 " were planned",
                           reduction->n_out, r->out[0]->count);
}

ot_status ot__run_reduce(const ot_run *r)
{
    const reduce_state *state = r->state;
    ot__reduction reduction;

    if (state->is_ready) {
        state->function(r->out[0]->data, r->in[0]->data, &state->reduction, state->op);
        return OT_OK;
    }
    OT_TRY(read_axes(r, state, &reduction));
    state->function(r->out[0]->data, r->in[0]->data, &reduction, state->op);
    return OT_OK;
}
