// SPDX-License-Identifier: Apache-2.0
// CumSum and CumProd: running sums and products along one axis.
#include "op/expand.h"
#include "ops/move/move.h"

// ---- shapes ----

static void infer_cumulative(ot_infer *c, int axis_input)
{
    const ot_shape *axis = ot_infer_shape(c, axis_input);
    int n, at;
    const int64_t *known = ot_infer_values(c, axis_input, &n);

    if (axis->ndim > 1)
        ot_infer_fail(c, "axis must be a scalar, has %d axes", axis->ndim);
    if (known != NULL && n == 1 && ot_dim_is_number(known[0]) &&
        !ot_infer_axis(c, known[0], ot_infer_shape(c, 0)->ndim, &at))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

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
    infer_cumulative(c, 1);
    cum_sum_infer_values(c);
}

static void cum_prod_infer(ot_infer *c)
{
    infer_cumulative(c, 1);
}

static void cum_prod_grad_infer(ot_infer *c)
{
    if (ot__infer_matches(c, 0, 1))
        infer_cumulative(c, 2);
}

// ---- kernels ----

typedef struct cumulative_state {
    bool is_exclusive, is_reverse;
} cumulative_state;

static ot_status cumulative_prep(ot_prep *p)
{
    cumulative_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->is_exclusive = ot_attr_int(ot_prep_node(p), "exclusive") != 0;
    state->is_reverse = ot_attr_int(ot_prep_node(p), "reverse") != 0;
    return OT_OK;
}

// Lines along the axis that an input gives: (outer, n, inner).
typedef struct axis_lines {
    int64_t outer, n, inner;
} axis_lines;

static ot_status run_axis_lines(const ot_run *r, int axis_input, axis_lines *lines)
{
    const ot_shape *x = &r->in[0]->shape;
    const ot_arg *given = r->in[axis_input];
    int axis;

    *lines = (axis_lines){0};
    if (given->count != 1 || !ot__axis_normalize(ot__arg_int(given, 0), x->ndim, &axis))
        return ot__error(OT_ERR_INVALID, "axis is not one of %d", x->ndim);
    if (r->in[0]->count > 0)
        *lines = (axis_lines){ot__dims_count(x->dim, axis), x->dim[axis],
                              ot__dims_count(x->dim + axis + 1, x->ndim - axis - 1)};
    return OT_OK;
}

static ot_status cumulative_run(const ot_run *r,
                                void (*cumulate)(void *y, const void *x, int64_t outer, int64_t n,
                                                 int64_t inner, bool is_exclusive, bool is_reverse))
{
    const cumulative_state *state = r->state;
    axis_lines lines;

    OT_TRY(run_axis_lines(r, 1, &lines));
    cumulate(r->out[0]->data, r->in[0]->data, lines.outer, lines.n, lines.inner,
             state->is_exclusive, state->is_reverse);
    return OT_OK;
}

static ot_status cum_prod_grad_run(const ot_run *r,
                                   void (*grad)(void *dx, const void *dy, const void *x,
                                                int64_t outer, int64_t n, int64_t inner,
                                                bool is_exclusive, bool is_reverse))
{
    const cumulative_state *state = r->state;
    axis_lines lines;

    OT_TRY(run_axis_lines(r, 2, &lines));
    grad(r->out[0]->data, r->in[0]->data, r->in[1]->data, lines.outer, lines.n, lines.inner,
         state->is_exclusive, state->is_reverse);
    return OT_OK;
}

#define RUN(symbol, type)                                                                          \
    static ot_status symbol##_run_##type(const ot_run *r)                                          \
    {                                                                                              \
        return cumulative_run(r, ot__ref_##symbol##_##type);                                       \
    }
OT_REDUCE_NUMBERS(RUN, cumsum)
OT_REDUCE_NUMBERS(RUN, cumprod)
#undef RUN
#define RUN(symbol, type)                                                                          \
    static ot_status symbol##_run_##type(const ot_run *r)                                          \
    {                                                                                              \
        return cum_prod_grad_run(r, ot__ref_##symbol##_##type);                                    \
    }
OT_REDUCE_FLOATS(RUN, cumprod_grad)

// ---- gradients ----

// dX = running sums of dY from the other end.
static void cum_sum_grad(ot_grad *g)
{
    ot_value *in[2] = {ot_grad_dy(g, 0), ot_grad_x(g, 1)};
    ot_node *node = ot_emit(g, "CumSum", NULL, in, 2, 1);

    ot_emit_int(g, node, "exclusive", ot_attr_int(ot_grad_node(g), "exclusive"));
    ot_emit_int(g, node, "reverse", ot_attr_int(ot_grad_node(g), "reverse") == 0);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static void cum_prod_grad(ot_grad *g)
{
    ot_value *in[3] = {ot_grad_dy(g, 0), ot_grad_x(g, 0), ot_grad_x(g, 1)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.CumProdGrad", NULL, in, 3, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

// ---- the gradient of CumProd in ONNX's operators ----

// The matrix as axes `axis` and `axis` + 1 of so many.
static ot_value *emit_as_axes(ot_grad *g, ot_value *matrix, int axis, int ndim)
{
    int64_t around[OT_MAX_NDIM];
    int n = 0;

    for (int k = 0; k < ndim; k++)
        if (k != axis && k != axis + 1)
            around[n++] = k;
    return ot_emit2(g, "Unsqueeze", matrix, ot_emit_constant_i64(g, around, n));
}

// 1 for each pair (j, k) where y_k is a product with x_j in it, else 0.
static ot_value *emit_pair_mask(ot_grad *g, ot_value *zeros, bool is_exclusive, bool is_reverse)
{
    const int64_t shift = is_exclusive ? (is_reverse ? -1 : 1) : 0;
    ot_value *in[2] = {ot_emit2(g, "Add", zeros, ot_emit_constant(g, 1.0, zeros)), NULL};
    ot_node *node;

    in[1] = ot__emit_at(g, ot_emit_constant_i64(g, &shift, 1), 0);
    node = in[0] == NULL || in[1] == NULL ? NULL : ot_emit(g, "Trilu", NULL, in, 2, 1);
    ot_emit_int(g, node, "upper", is_reverse ? 0 : 1);
    return ot_emit_output(g, node, 0);
}

// x_j at (j, k) becomes 1 where j = k, so that products along k are those without x_j: summed with
// dY_k over all k whose product has x_j in it.
static void cum_prod_grad_expand(ot_grad *g)
{
    const bool is_exclusive = ot_attr_int(ot_grad_node(g), "exclusive") != 0;
    const bool is_reverse = ot_attr_int(ot_grad_node(g), "reverse") != 0;
    ot_value *dy = ot_grad_x(g, 0), *x = ot_grad_x(g, 1), *in[2], *sides[2], *zeros, *pairs,
             *column;
    int n_known, axis, ndim;
    const int64_t *known = ot_value_known(ot_grad_x(g, 2), &n_known);
    ot_node *products;
    int64_t at;

    if (!ot_value_has_shape(x) || known == NULL || n_known != 1 ||
        ot_value_shape(x)->ndim == OT_MAX_NDIM ||
        !ot__axis_normalize(known[0], ot_value_shape(x)->ndim, &axis))
        return;
    ndim = ot_value_shape(x)->ndim + 1;
    at = axis;
    column = ot_emit_constant_i64(g, &at, 1);
    sides[0] = sides[1] = ot__emit_extents(g, x, axis, axis + 1);
    zeros = ot__emit_zeros(g, ot__emit_concat(g, sides, 2, 0), x);
    pairs = emit_as_axes(g, emit_pair_mask(g, zeros, is_exclusive, is_reverse), axis, ndim);
    in[0] = emit_as_axes(g, ot_emit1(g, "EyeLike", zeros), axis, ndim);
    in[0] = ot_emit_cast(g, in[0], OT_BOOL);
    in[1] = ot_emit_constant(g, 1.0, x);
    in[0] = ot_emit3(g, "Where", in[0], in[1], ot_emit2(g, "Unsqueeze", x, column));
    at = axis + 1;
    in[1] = ot__emit_at(g, ot_emit_constant_i64(g, &at, 1), 0);
    products = in[0] == NULL || in[1] == NULL ? NULL : ot_emit(g, "CumProd", NULL, in, 2, 1);
    ot_emit_int(g, products, "exclusive", is_exclusive);
    ot_emit_int(g, products, "reverse", is_reverse);
    in[0] = ot_emit2(g, "Mul", ot_emit_output(g, products, 0), pairs);
    in[0] = ot_emit2(g, "Mul", in[0], ot_emit2(g, "Unsqueeze", dy, column));
    ot_expand_set(g, 0, ot__emit_sum(g, in[0], &at, 1, false));
}

// ---- records ----

static const ot_port cumulative_in[] = {{"x", "T", 0}, {"axis", "I", OT_PORT_NO_GRAD}, {0}};
static const ot_port cumulative_out[] = {{"y", "T", 0}, {0}};
static const ot_port cum_prod_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {"axis", "I", 0}, {0}};
static const ot_attr_spec cumulative_attrs[] = {
    OT__INT_ATTR("exclusive", 0),
    OT__INT_ATTR("reverse", 0),
    {0},
};
#define KERNELS(symbol)                                                                            \
    {                                                                                              \
        OT__REF_KERNELS(cumulative_prep, symbol##_run),                                            \
            OT__REF_KERNEL("T: i32 u32", cumulative_prep, symbol##_run_i32),                       \
            OT__REF_KERNEL("T: i64 u64", cumulative_prep, symbol##_run_i64),                       \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
static const ot_kernel cum_sum_kernels[] = KERNELS(cumsum);
static const ot_kernel cum_prod_kernels[] = KERNELS(cumprod);
static const ot_kernel cum_prod_grad_kernels[] = {
    OT__REF_KERNELS(cumulative_prep, cumprod_grad_run), {0}};
#define CUMULATIVE(name_, symbol, since_)                                                          \
    const ot_op_def ot__op_##symbol[] = {{.name = name_,                                           \
                                          .since = since_,                                         \
                                          .inputs = cumulative_in,                                 \
                                          .outputs = cumulative_out,                               \
                                          .attrs = cumulative_attrs,                               \
                                          .types = "T: f32 f64 i32 i64 u32 u64; I: i32 i64",       \
                                          .infer = symbol##_infer,                                 \
                                          .kernels = symbol##_kernels,                             \
                                          .grad = symbol##_grad,                                   \
                                          .flags = OT_OP_IN_PLACE},                                \
                                         {0}}
CUMULATIVE("CumSum", cum_sum, 11);
CUMULATIVE("CumProd", cum_prod, 26);
const ot_op_def ot__op_cum_prod_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "CumProdGrad",
     .since = 1,
     .inputs = cum_prod_grad_in,
     .outputs = ot__gradient_out,
     .attrs = cumulative_attrs,
     .types = "T: f32 f64; I: i32 i64",
     .infer = cum_prod_grad_infer,
     .kernels = cum_prod_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = cum_prod_grad_expand},
    {0},
};
