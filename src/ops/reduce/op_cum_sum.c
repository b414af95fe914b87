// SPDX-License-Identifier: Apache-2.0
// CumSum: running sums along one axis.
#include "ops/move/move.h"

typedef struct cum_sum_state {
    bool is_exclusive, is_reverse;
} cum_sum_state;

// Known elements of a list of integers add up.
static void cum_sum_infer_values(ot_infer *c)
{
    int n;
    const int64_t *x = ot_infer_values(c, 0, &n);
    const bool is_exclusive = ot_attr_int(ot_infer_node(c), "exclusive") != 0;
    const bool is_reverse = ot_attr_int(ot_infer_node(c), "reverse") != 0;
    int64_t y[OT_MAX_KNOWN], sum = 0;

    if (x == NULL || ot_infer_shape(c, 0)->ndim != 1)
        return;
    for (int k = 0; k < n; k++) {
        const int i = is_reverse ? n - 1 - k : k;
        const int64_t with = ot_infer_add(c, sum, x[i]);

        y[i] = is_exclusive ? sum : with;
        sum = with;
    }
    ot_infer_set_values(c, 0, y, n);
}

static void cum_sum_infer(ot_infer *c)
{
    const ot_shape *axis = ot_infer_shape(c, 1);
    int n, at;
    const int64_t *known = ot_infer_values(c, 1, &n);

    if (axis->ndim > 1)
        ot_infer_fail(c, "axis must be a scalar, has %d axes", axis->ndim);
    if (known != NULL && n == 1 && ot_dim_is_number(known[0]) &&
        !ot_infer_axis(c, known[0], ot_infer_shape(c, 0)->ndim, &at))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
    cum_sum_infer_values(c);
}

static ot_status cum_sum_prep(ot_prep *p)
{
    cum_sum_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->is_exclusive = ot_attr_int(ot_prep_node(p), "exclusive") != 0;
    state->is_reverse = ot_attr_int(ot_prep_node(p), "reverse") != 0;
    return OT_OK;
}

static ot_status cum_sum_run(const ot_run *r,
                             void (*cumsum)(void *y, const void *x, int64_t outer, int64_t n,
                                            int64_t inner, bool is_exclusive, bool is_reverse))
{
    const cum_sum_state *state = r->state;
    const ot_shape *x = &r->in[0]->shape;
    int axis;

    if (r->in[1]->count != 1 || !ot__axis_normalize(ot__arg_int(r->in[1], 0), x->ndim, &axis))
        return ot__error(OT_ERR_INVALID, "axis is not one of %d", x->ndim);
    if (r->in[0]->count > 0)
        cumsum(r->out[0]->data, r->in[0]->data, ot__dims_count(x->dim, axis), x->dim[axis],
               ot__dims_count(x->dim + axis + 1, x->ndim - axis - 1), state->is_exclusive,
               state->is_reverse);
    return OT_OK;
}

#define RUN(symbol, type)                                                                          \
    static ot_status cum_sum_run_##type(const ot_run *r)                                           \
    {                                                                                              \
        return cum_sum_run(r, ot__ref_cumsum_##type);                                              \
    }
OT_REDUCE_NUMBERS(RUN, )

// dX = running sums of dY from the other end.
static void cum_sum_grad(ot_grad *g)
{
    ot_value *in[2] = {ot_grad_dy(g, 0), ot_grad_x(g, 1)};
    ot_node *node = ot_emit(g, "CumSum", NULL, in, 2, 1);

    ot_emit_int(g, node, "exclusive", ot_attr_int(ot_grad_node(g), "exclusive"));
    ot_emit_int(g, node, "reverse", ot_attr_int(ot_grad_node(g), "reverse") == 0);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port cum_sum_in[] = {{"x", "T", 0}, {"axis", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port cum_sum_out[] = {{"y", "T", 0}, {0}};
static const ot_attr_spec cum_sum_attrs[] = {
    OT__INT_ATTR("exclusive", 0),
    OT__INT_ATTR("reverse", 0),
    {0},
};
static const ot_kernel cum_sum_kernels[] = {
    OT__REF_KERNELS(cum_sum_prep, cum_sum_run),
    OT__REF_KERNEL("T: i32 u32", cum_sum_prep, cum_sum_run_i32),
    OT__REF_KERNEL("T: i64 u64", cum_sum_prep, cum_sum_run_i64),
    {0},
};
const ot_op_def ot__op_cum_sum[] = {
    {.name = "CumSum",
     .since = 11,
     .inputs = cum_sum_in,
     .outputs = cum_sum_out,
     .attrs = cum_sum_attrs,
     .types = "T: f32 f64 i32 i64 u32 u64; I: i32 i64",
     .infer = cum_sum_infer,
     .kernels = cum_sum_kernels,
     .grad = cum_sum_grad,
     .flags = OT_OP_IN_PLACE},
    {0},
};
