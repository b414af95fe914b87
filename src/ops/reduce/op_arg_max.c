// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin: position of the greatest or least element along one axis.
#include "ops/move/move.h"

static void arg_max_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape y = {0};
    int axis;

    if (!ot_infer_axis(c, ot_attr_int(node, "axis"), x->ndim, &axis))
        return;
    if (x->dim[axis] == 0)
        ot_infer_fail(c, "axis %d has no elements", axis);
    for (int k = 0; k < x->ndim; k++) {
        if (k != axis)
            y.dim[y.ndim++] = x->dim[k];
        else if (ot_attr_int(node, "keepdims") != 0)
            y.dim[y.ndim++] = 1;
    }
    ot_infer_set(c, 0, OT_I64, &y);
}

typedef struct arg_state {
    int axis;
    bool is_max, is_last;
} arg_state;

static ot_status arg_prepare(ot_prep *p, bool is_max)
{
    const ot_arg *x = ot_prep_in(p, 0);
    arg_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->is_max = is_max;
    state->is_last = ot_attr_int(ot_prep_node(p), "select_last_index") != 0;
    if (!ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->shape.ndim, &state->axis) ||
        x->shape.dim[state->axis] == 0)
        return ot_prep_fail(p, OT_ERR_INVALID, "the axis is out of range or has no elements");
    return OT_OK;
}

static ot_status arg_max_prepare(ot_prep *p)
{
    return arg_prepare(p, true);
}

static ot_status arg_min_prepare(ot_prep *p)
{
    return arg_prepare(p, false);
}

static ot_status arg_run(const ot_run *r,
                         void (*arg)(int64_t *y, const void *x, int64_t outer, int64_t n,
                                     int64_t inner, bool is_max, bool is_last))
{
    const arg_state *state = r->state;
    const ot_shape *x = &r->in[0]->shape;
    const int axis = state->axis;

    if (r->out[0]->count > 0)
        arg(r->out[0]->data, r->in[0]->data, ot__dims_count(x->dim, axis), x->dim[axis],
            ot__dims_count(x->dim + axis + 1, x->ndim - axis - 1), state->is_max, state->is_last);
    return OT_OK;
}

static const ot_port arg_max_in[] = {{"data", "T", OT_PORT_NO_GRAD}, {0}};
static const ot_port arg_max_out[] = {{"reduced", "i64", 0}, {0}};
static const ot_attr_spec arg_max_attrs[] = {
    OT__INT_ATTR("axis", 0),
    OT__INT_ATTR("keepdims", 1),
    OT__INT_ATTR("select_last_index", 0),
    {0},
};
#define RUN(symbol, type)                                                                          \
    static ot_status arg_run_##type(const ot_run *r)                                               \
    {                                                                                              \
        return arg_run(r, ot__ref_arg_##type);                                                     \
    }
#define KERNEL(symbol, type) OT__REF_KERNEL("T: " #type, symbol##_prepare, arg_run_##type),
#define NAME(symbol, type) " " #type
#define ARG_OPERATOR(name_, symbol)                                                                \
    static const ot_kernel symbol##_kernels[] = {OT_REDUCE_ORDERED(KERNEL, symbol){0}};            \
    const ot_op_def ot__op_##symbol[] = {{.name = name_,                                           \
                                          .since = 1,                                              \
                                          .inputs = arg_max_in,                                    \
                                          .outputs = arg_max_out,                                  \
                                          .attrs = arg_max_attrs,                                  \
                                          .types = "T:" OT_REDUCE_ORDERED(NAME, ),                 \
                                          .infer = arg_max_infer,                                  \
                                          .kernels = symbol##_kernels,                             \
                                          .flags = OT_OP_NO_GRAD},                                 \
                                         {0}};
OT_REDUCE_ORDERED(RUN, )
ARG_OPERATOR("ArgMax", arg_max)
ARG_OPERATOR("ArgMin", arg_min)
