// SPDX-License-Identifier: Apache-2.0
// TopK: the k greatest or least elements along an axis, in order, and where they stand.
#include "ops/move/move.h"

enum { X, K };            // inputs
enum { VALUES, INDICES }; // outputs

static void top_k_infer(ot_infer *c)
{
    const ot_shape *k = ot_infer_shape(c, K);
    const ot_tensor *constant = ot_infer_constant(c, K);
    ot_shape y = *ot_infer_shape(c, X);
    int n, axis;
    const int64_t *known = ot_infer_values(c, K, &n);
    int64_t number = known != NULL && n == 1 ? known[0] : ot_dim_unknown();

    if (k->ndim != 1 || (ot_dim_is_number(k->dim[0]) && k->dim[0] != 1)) {
        ot_infer_fail(c, "K must be a list of one number");
        return;
    }
    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), y.ndim, &axis))
        return;
    if (constant != NULL)
        number = ot__tensor_get_i64(constant, 0);
    if ((constant != NULL || ot_dim_is_number(number)) &&
        (number < 0 || (ot_dim_is_number(y.dim[axis]) && number > y.dim[axis]))) {
        ot_infer_fail(c, "K is %" PRId64 ", axis %d has %" PRId64 " elements", number, axis,
                      ot_dim_is_number(y.dim[axis]) ? y.dim[axis] : -1);
        return;
    }
    if (number == ot_dim_unknown()) { // what a model states for one output holds for both
        number = ot__infer_stated_dim(c, VALUES, axis, number);
        number = ot__infer_stated_dim(c, INDICES, axis, number);
    }
    y.dim[axis] = number;
    ot_infer_set(c, VALUES, ot_infer_dtype(c, X), &y);
    ot_infer_set(c, INDICES, OT_I64, &y);
}

typedef struct top_k_state {
    int64_t outer, n, inner, k;
    bool is_largest;
} top_k_state;

static ot_status top_k_prep(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_shape *x = &ot_prep_in(p, X)->shape;
    const ot_arg *y = ot_prep_out(p, INDICES);
    top_k_state *state = ot_prep_state(p, sizeof(*state));
    int axis = 0;

    OT_TRY(ot__made(state));
    (void)ot__axis_normalize(ot_attr_int(node, "axis"), x->ndim, &axis);
    state->k = y->shape.dim[axis];
    state->n = x->dim[axis];
    if (state->k > state->n)
        return ot_prep_fail(p, OT_ERR_INVALID, "%" PRId64 " of %" PRId64 " elements are planned",
                            state->k, state->n);
    state->is_largest = !ot_attr_given(node, "largest") || ot_attr_int(node, "largest") != 0;
    if (y->count > 0) {
        state->outer = ot__dims_count(x->dim, axis);
        state->inner = ot__dims_count(x->dim + axis + 1, x->ndim - axis - 1);
    }
    return OT_OK;
}

static ot_status check_k(const ot_run *r)
{
    const top_k_state *state = r->state;

    if (r->in[K]->count != 1)
        return ot__error(OT_ERR_INVALID, "K has %" PRId64 " elements, expected 1", r->in[K]->count);
    return ot__check_planned(ot__arg_int(r->in[K], 0), "elements are wanted", state->k);
}

static ot_status top_k_run(const ot_run *r,
                           void (*top_k)(void *values, int64_t *indices, const void *x,
                                         int64_t outer, int64_t n, int64_t inner, int64_t k,
                                         bool is_largest))
{
    const top_k_state *state = r->state;

    OT_TRY(check_k(r));
    if (state->outer > 0)
        top_k(r->out[VALUES]->data, r->out[INDICES]->data, r->in[X]->data, state->outer, state->n,
              state->inner, state->k, state->is_largest);
    return OT_OK;
}

static bool indices_fit_32_bits(const ot_prep *p)
{
    return ot_prep_in(p, X)->count <= INT32_MAX;
}

static ot_status top_k_by_keys_prep(ot_prep *p, size_t (*bytes)(int64_t n))
{
    OT_TRY(top_k_prep(p));
    ot_prep_scratch(p, bytes(((top_k_state *)p->state)->n) * (size_t)ot_prep_threads(p));
    return OT_OK;
}

static ot_status top_k_by_keys_run(const ot_run *r,
                                   void (*top_k)(const ot__top_k *p, void *scratch, int n_parts))
{
    const top_k_state *state = r->state;
    const ot__top_k p = {.values = r->out[VALUES]->data,
                         .indices = r->out[INDICES]->data,
                         .x = r->in[X]->data,
                         .outer = state->outer,
                         .n = state->n,
                         .inner = state->inner,
                         .k = state->k,
                         .is_largest = state->is_largest};

    OT_TRY(check_k(r));
    top_k(&p, r->scratch, r->n_threads);
    return OT_OK;
}

// dX = dY where each value was taken from, else zeros.
static void top_k_grad(ot_grad *g)
{
    ot_value *in[3] = {ot_grad_dy(g, VALUES)};
    ot_node *node;

    if (in[0] == NULL)
        return;
    in[1] = ot_emit_shape(g, ot_grad_x(g, X));
    in[2] = ot_grad_y(g, INDICES);
    node = ot_emit(g, "com.microsoft.GatherElementsGrad", NULL, in, 3, 1);
    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    ot_grad_set_dx(g, X, ot_emit_output(g, node, 0));
}

static void top_k_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "k", K);
}

#define RUN(symbol, type)                                                                          \
    static ot_status symbol##_run_##type(const ot_run *r)                                          \
    {                                                                                              \
        return top_k_run(r, ot__ref_##symbol##_##type);                                            \
    }
#define RUN_BY_KEYS(symbol, type)                                                                  \
    static ot_status symbol##_by_keys_prep_##type(ot_prep *p)                                      \
    {                                                                                              \
        return top_k_by_keys_prep(p, ot__##symbol##_bytes_##type);                                 \
    }                                                                                              \
    static ot_status symbol##_by_keys_run_##type(const ot_run *r)                                  \
    {                                                                                              \
        return top_k_by_keys_run(r, ot__##symbol##_##type);                                        \
    }
#define KERNEL_BY_KEYS(symbol, type)                                                               \
    {.name = "keys",                                                                               \
     .types = "T: " #type,                                                                         \
     .flags = OT_KERNEL_THREAD_EXACT,                                                              \
     .can_run = indices_fit_32_bits,                                                               \
     .prepare = symbol##_by_keys_prep_##type,                                                      \
     .run = symbol##_by_keys_run_##type},
#define KERNEL(symbol, type) OT__REF_KERNEL("T: " #type, symbol##_prep, symbol##_run_##type),
#define NAME(symbol, type) " " #type
OT_REDUCE_TOP(RUN, top_k)
OT_REDUCE_NUMBERS(RUN_BY_KEYS, top_k)
static const ot_port top_k_in[] = {{"X", "T", 0}, {"K", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port top_k_out[] = {{"Values", "T", 0}, {"Indices", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_attr_spec k_attrs[] = {
    OT__INT_ATTR("axis", -1),
    {.name = "k", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    {0},
};
static const ot_attr_spec axis_attrs[] = {OT__INT_ATTR("axis", -1), {0}};
static const ot_attr_spec order_attrs[] = {
    OT__INT_ATTR("axis", -1),
    OT__INT_ATTR("largest", 1),
    OT__INT_ATTR("sorted", 1), // without it any order is right, also the sorted one
    {0},
};
static const ot_kernel top_k_kernels[] = {OT_REDUCE_NUMBERS(KERNEL_BY_KEYS, top_k)
                                              OT_REDUCE_TOP(KERNEL, top_k){0}};
#define TOP_K(since_, attrs_)                                                                      \
    .name = "TopK", .since = since_, .inputs = top_k_in, .outputs = top_k_out, .attrs = attrs_,    \
    .types = "T:" OT_REDUCE_TOP(NAME, ), .infer = top_k_infer, .kernels = top_k_kernels,           \
    .grad = top_k_grad
const ot_op_def ot__op_top_k[] = {
    {.name = "TopK",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = top_k_out,
     .attrs = k_attrs,
     .types = "T: f16 f32 f64",
     .infer = top_k_infer,
     .upgrade = top_k_upgrade},
    {TOP_K(10, axis_attrs)},
    {TOP_K(11, order_attrs)},
    {0},
};
