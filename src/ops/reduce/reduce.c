// SPDX-License-Identifier: Apache-2.0
// The Reduce* records: shapes, kernels and the rows.
#include "ops/reduce/reduce.h"

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

static void reduce_infer(ot_infer *c)
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

// Also known integer elements, when everything is reduced; `fold` joins two, which may be symbols.
static void reduce_infer_known(ot_infer *c, int64_t (*fold)(ot_infer *c, int64_t a, int64_t b))
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int n;
    const int64_t *known = ot_infer_values(c, 0, &n);
    int64_t total;
    ot__axes axes;
    const ot__given given = ot__infer_axes(c, "axes", 1, x->ndim, &axes);

    reduce_infer(c);
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

static void reduce_infer_sum(ot_infer *c)
{
    reduce_infer_known(c, ot_infer_add);
}

static void reduce_infer_prod(ot_infer *c)
{
    reduce_infer_known(c, ot_infer_mul);
}

// Of numbers only: nothing can be said about symbols.
static int64_t larger_number(ot_infer *c, int64_t a, int64_t b)
{
    (void)c;
    return ot_dim_is_number(a) && ot_dim_is_number(b) ? OT_MAX(a, b) : ot_dim_unknown();
}

static int64_t smaller_number(ot_infer *c, int64_t a, int64_t b)
{
    (void)c;
    return ot_dim_is_number(a) && ot_dim_is_number(b) ? OT_MIN(a, b) : ot_dim_unknown();
}

static void reduce_infer_max(ot_infer *c)
{
    reduce_infer_known(c, larger_number);
}

static void reduce_infer_min(ot_infer *c)
{
    reduce_infer_known(c, smaller_number);
}

// ---- kernels ----

typedef struct reduce_state {
    ot__reduction reduction;
    bool is_ready; // false: the axes are read in every run
    bool empty_is_none;
} reduce_state;

static ot_status reduce_prepare(ot_prep *p)
{
    const ot_shape *x = &ot_prep_in(p, 0)->shape;
    reduce_state *state = ot_prep_state(p, sizeof(*state));
    ot__axes axes;
    ot__given given;

    OT_TRY(ot__made(state));
    given = ot__prep_axes(p, "axes", 1, x->ndim, &axes);
    if (given == OT__FAILED)
        return p->status;
    state->empty_is_none = ot_attr_int(ot_prep_node(p), "noop_with_empty_axes") != 0;
    state->is_ready = given != OT__UNKNOWN;
    if (state->is_ready) {
        settle_empty(ot_prep_node(p), x->ndim, &axes);
        ot__reduction_init(&state->reduction, x, axes.has);
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

static ot_status settle_reduction(const ot_run *r, ot__reduction *reduction)
{
    const reduce_state *state = r->state;

    *reduction = state->reduction;
    return state->is_ready ? OT_OK : read_axes(r, state, reduction);
}

static ot_status reduce_run(const ot_run *r,
                            void (*reduce)(void *y, const void *x, const ot__reduction *r))
{
    ot__reduction reduction;

    OT_TRY(settle_reduction(r, &reduction));
    reduce(r->out[0]->data, r->in[0]->data, &reduction);
    return OT_OK;
}

static ot_status reduce_run_simd(const ot_run *r,
                                 void (*reduce)(float *y, const float *x, const ot__reduction *r))
{
    ot__reduction reduction;

    OT_TRY(settle_reduction(r, &reduction));
    reduce(r->out[0]->data, r->in[0]->data, &reduction);
    return OT_OK;
}

// In mixed precision, to the same type or f32.
static bool reduces_narrow(const ot_prep *p)
{
    return ot__dtype_is_narrow(ot_prep_in(p, 0)->dtype);
}

#define RUN(symbol, type)                                                                          \
    static ot_status symbol##_run_##type(const ot_run *r)                                          \
    {                                                                                              \
        return reduce_run(r, ot__ref_##symbol##_##type);                                           \
    }
#define KERNEL(symbol, type) OT__REF_KERNEL("T: " #type, reduce_prepare, symbol##_run_##type),
#define NARROW_RUN(symbol, type)                                                                   \
    static ot_status symbol##_run_##type(const ot_run *r)                                          \
    {                                                                                              \
        return reduce_run(r, r->out[0]->dtype == OT_F32 ? ot__ref_##symbol##_##type##_f32          \
                                                        : ot__ref_##symbol##_##type);              \
    }
#define NARROW_KERNEL(symbol, type)                                                                \
    {.name = "simd",                                                                               \
     .types = "T: f32 " #type,                                                                     \
     .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED,                                            \
     .can_run = reduces_narrow,                                                                    \
     .prepare = reduce_prepare,                                                                    \
     .run = symbol##_run_##type},
#define NAME(symbol, type) " " #type
#define KERNELS(symbol, types)                                                                     \
    static ot_status symbol##_run_simd(const ot_run *r)                                            \
    {                                                                                              \
        return reduce_run_simd(r, ot__reducers_best()->symbol);                                    \
    }                                                                                              \
    OT_REDUCE_##types(RUN, symbol)                                                                 \
        OT_REDUCE_NARROW_##types(NARROW_RUN, symbol) static const ot_kernel symbol##_kernels[] = { \
            OT_REDUCE_NARROW_##types(NARROW_KERNEL, symbol)                                        \
                OT__SIMD_KERNEL("T: f32", NULL, reduce_prepare, symbol##_run_simd),                \
            OT_REDUCE_##types(KERNEL, symbol){0}};                                                 \
    static const char symbol##_types[] = "T:" OT_REDUCE_##types(NAME, symbol);
OT_REDUCTIONS(KERNELS)

// ---- records ----

static void axes_to_input(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "axes", 1);
}

static const ot_port reduce_in[] = {
    {"data", "T", 0}, {"axes", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_port reduce_training_in[] = {
    {"data", "T", 0}, {"axes", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port reduce_out[] = {{"reduced", "T", 0}, {0}};
static const ot_attr_spec reduce_attrs_1[] = {
    {.name = "axes", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("keepdims", 1),
    {0},
};
static const ot_attr_spec reduce_attrs[] = {
    OT__INT_ATTR("keepdims", 1),
    OT__INT_ATTR("noop_with_empty_axes", 0),
    {0},
};

#define RECORD(name_, symbol, in, attributes, infer_, gradient, ...)                               \
    {                                                                                              \
        .name = name_, .inputs = in, .outputs = reduce_out, .attrs = attributes,                   \
        .types = symbol##_types, .infer = infer_, .kernels = symbol##_kernels, .grad = gradient,   \
        __VA_ARGS__                                                                                \
    }
#define REDUCTION(name, symbol, infer, gradient)                                                   \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        RECORD(name, symbol, ot__data_in, reduce_attrs_1, infer, gradient, .since = 1,             \
               .raise = axes_to_input),                                                            \
        RECORD(name, symbol, reduce_in, reduce_attrs, infer, gradient, .since = 18),               \
        {0}};

REDUCTION("ReduceMean", reduce_mean, reduce_infer, ot__reduce_mean_grad)
REDUCTION("ReduceL1", reduce_l1, reduce_infer, ot__reduce_l1_grad)
REDUCTION("ReduceSumSquare", reduce_sum_square, reduce_infer, ot__reduce_sum_square_grad)
REDUCTION("ReduceL2", reduce_l2, reduce_infer, ot__reduce_l2_grad)
REDUCTION("ReduceProd", reduce_prod, reduce_infer_prod, ot__reduce_prod_grad)
REDUCTION("ReduceLogSum", reduce_log_sum, reduce_infer, ot__reduce_log_sum_grad)
REDUCTION("ReduceLogSumExp", reduce_log_sum_exp, reduce_infer, ot__reduce_log_sum_exp_grad)
REDUCTION("ReduceMax", reduce_max, reduce_infer_max, ot__reduce_extreme_grad)
REDUCTION("ReduceMin", reduce_min, reduce_infer_min, ot__reduce_extreme_grad)

const ot_op_def ot__op_reduce_sum[] = {
    {.name = "ReduceSum",
     .since = 1,
     .inputs = ot__data_in,
     .outputs = reduce_out,
     .attrs = reduce_attrs_1,
     .types = reduce_sum_types,
     .upgrade = axes_to_input},
    RECORD("ReduceSum", reduce_sum, reduce_in, reduce_attrs, reduce_infer_sum, ot__reduce_sum_grad,
           .since = 13, .expand = ot__reduce_sum_expand),
    {0},
};
// As ONNX Runtime writes it in training graphs: the axes are always an input.
const ot_op_def ot__op_reduce_sum_training[] = {
    RECORD("ReduceSumTraining", reduce_sum, reduce_training_in, reduce_attrs, reduce_infer,
           ot__reduce_sum_grad, .since = 1, .domain = OT__MS),
    {0},
};
