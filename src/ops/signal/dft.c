// SPDX-License-Identifier: Apache-2.0
// DFT: discrete Fourier transforms along an axis of real numbers or of complex ones, which the last
// axis holds as one or two parts; and its gradient, which is a transform of the other direction.
#include "ops/signal/signal.h"

enum { X, LENGTH, AXIS };             // inputs
enum { DY, SHAPE, LENGTH_G, AXIS_G }; // of the gradient
enum { AXIS_IS_INPUT_SINCE = 20 };    // opset

// What a node says, and where its inputs are.
typedef struct dft {
    bool is_inverse, is_onesided, is_gradient;
    int length, axis; // inputs
} dft;

extern const ot_op_def ot__op_dft_grad[];

static dft read_dft(const ot_node *node)
{
    const bool is_gradient = node->op == ot__op_dft_grad;

    return (dft){.is_inverse = ot_attr_int(node, "inverse") != 0,
                 .is_onesided = ot_attr_int(node, "onesided") != 0,
                 .is_gradient = is_gradient,
                 .length = is_gradient ? LENGTH_G : LENGTH,
                 .axis = is_gradient ? AXIS_G : AXIS};
}

// Else it is an input, or -2.
static bool axis_is_attr(const ot_node *node)
{
    return ot_attr_given(node, "axis") ||
           (node->op != ot__op_dft_grad && node->op->since < AXIS_IS_INPUT_SINCE);
}

// One half of the spectrum of a real signal: made of the signal, or made into it.
static bool makes_half(const dft *d)
{
    return d->is_onesided && !d->is_inverse;
}

static bool takes_half(const dft *d)
{
    return d->is_onesided && d->is_inverse;
}

// ---- axis and length, as far as known ----

// The axis of x, of so many axes, or -1 where it is not known; false: the context has the error.
static bool infer_dft_axis(ot_infer *c, const dft *d, int ndim, int *axis)
{
    const ot_node *node = ot_infer_node(c);
    int64_t given = -2;
    int n;
    const int64_t *known = ot_infer_values(c, d->axis, &n);

    *axis = -1;
    if (ndim < 2)
        return ot__refuse(c, "input has %d axes, expected at least 2", ndim);
    if (axis_is_attr(node)) {
        given = ot_attr_int(node, "axis");
    } else if (ot_infer_has(c, d->axis)) {
        if (!ot__infer_one_element(c, d->axis))
            return false;
        if (known == NULL || n != 1 || !ot_dim_is_number(known[0]))
            return true;
        given = known[0];
    }
    if (!ot__axis_normalize(given, ndim, axis) || *axis == ndim - 1) {
        *axis = -1;
        return ot__refuse(c, "axis is %" PRId64 ", expected %d to -2 or 0 to %d", given, -ndim,
                          ndim - 2);
    }
    return true;
}

// N where x has `points` along the axis; false: the context has the error.
static bool infer_dft_length(ot_infer *c, const dft *d, int64_t points, int64_t *length)
{
    int n;
    const int64_t *known = ot_infer_values(c, d->length, &n);

    *length = points;
    if (ot_infer_has(c, d->length)) {
        if (!ot__infer_one_element(c, d->length))
            return false;
        *length = known != NULL && n == 1 ? known[0] : ot_dim_unknown();
    } else if (takes_half(d)) {
        *length = ot_infer_mul(c, 2, ot_infer_sub(c, points, 1));
    }
    if (!ot_dim_is_number(*length) ||
        (*length == 0 && !d->is_onesided && !ot_infer_has(c, d->length)))
        return true;
    return (*length >= 1 && *length <= OT__FOURIER_MAX) ||
           ot__refuse(c, "the signal has length %" PRId64 ", expected 1 to %" PRId64, *length,
                      OT__FOURIER_MAX);
}

static bool check_parts(ot_infer *c, const dft *d, int64_t parts)
{
    if (!ot_dim_is_number(parts))
        return true;
    if (makes_half(d) && parts != 1)
        return ot__refuse(c,
                          "input has size %" PRId64
                          " along its last axis, expected 1: onesided takes real signals",
                          parts);
    if (takes_half(d) && parts != 2)
        return ot__refuse(c,
                          "input has size %" PRId64
                          " along its last axis, expected 2: onesided and inverse takes spectra",
                          parts);
    return parts == 1 || parts == 2 ||
           ot__refuse(c, "input has size %" PRId64 " along its last axis, expected 1 or 2", parts);
}

// What becomes of a tensor of shape x, as far as known; false: the context has the error.
static bool infer_transformed(ot_infer *c, const dft *d, const ot_shape *x, ot_shape *y)
{
    const bool keeps_shape = !d->is_onesided && !ot_infer_has(c, d->length);
    int64_t length;
    int axis;

    *y = *x;
    if (!infer_dft_axis(c, d, x->ndim, &axis) || !check_parts(c, d, x->dim[x->ndim - 1]))
        return false;
    if (axis < 0) {
        for (int k = 0; !keeps_shape && k < y->ndim; k++)
            y->dim[k] = ot_dim_unknown();
    } else {
        if (!infer_dft_length(c, d, x->dim[axis], &length))
            return false;
        y->dim[axis] = makes_half(d) ? ot_infer_add(c, ot_infer_div(c, length, 2), 1) : length;
    }
    y->dim[y->ndim - 1] = takes_half(d) ? 1 : 2;
    return true;
}

static void dft_infer(ot_infer *c)
{
    const dft d = read_dft(ot_infer_node(c));
    ot_shape y;

    if (infer_transformed(c, &d, ot_infer_shape(c, X), &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
}

static void dft_grad_infer(ot_infer *c)
{
    const dft d = read_dft(ot_infer_node(c));
    ot_shape x, y;

    if (!ot__infer_shape_input(c, SHAPE, &x)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, DY));
        return;
    }
    if (!infer_transformed(c, &d, &x, &y))
        return;
    if (!ot__shape_may_equal(ot_infer_shape(c, DY), &y))
        ot_infer_fail(c, "dY does not have the shape of the transform");
    ot_infer_set(c, 0, ot_infer_dtype(c, DY), &x);
}

// ---- kernels ----

// Where the axis is known only in the run, one for each that it may be: of no points where there is
// nothing to do, of -1 where the shapes are none along this axis.
typedef struct dft_state {
    int axis_input, axis; // axis -1: as said
    int length_input;
    ot__transform plan[OT_MAX_NDIM];
} dft_state;

// An integer input that is constant; false: it is not there, or not constant.
static bool read_constant_int(const ot_prep *p, int input, int64_t *value)
{
    const void *given = ot_prep_constant(p, input);
    const ot_arg *arg = ot_prep_in(p, input);

    if (given == NULL || arg == NULL || arg->count != 1)
        return false;
    *value = ot__ref_index_get(given, ot_dtype_size(arg->dtype), 0);
    return true;
}

static ot_status prep_dft_axis(ot_prep *p, const dft *d, int ndim, int *axis)
{
    const ot_node *node = ot_prep_node(p);
    int64_t given = -2;

    *axis = -1;
    if (axis_is_attr(node))
        given = ot_attr_int(node, "axis");
    else if (ot_prep_in(p, d->axis) != NULL && !read_constant_int(p, d->axis, &given))
        return OT_OK;
    return ot__axis_normalize(given, ndim, axis) && *axis < ndim - 1
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_INVALID, "axis is %" PRId64 ", input has %d axes", given,
                              ndim);
}

// N along an axis; x and y are the shapes of the forward transform.
static ot_status prep_dft_length(ot_prep *p, const dft *d, const ot_shape *x, const ot_shape *y,
                                 int axis, int64_t *n)
{
    const bool is_given = ot_prep_in(p, d->length) != NULL;
    const int64_t made = y->dim[axis];

    *n = makes_half(d) ? x->dim[axis] : made;
    if (is_given && makes_half(d) && !read_constant_int(p, d->length, n))
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "dft_length must be constant with onesided");
    if (*n < 0 || *n > OT__FOURIER_MAX || made != (makes_half(d) ? *n / 2 + 1 : *n))
        return ot_prep_fail(p, OT_ERR_INVALID,
                            "%" PRId64 " points of a signal of length %" PRId64 " along axis %d",
                            made, *n, axis);
    return OT_OK;
}

static ot__fourier_side side_of(const ot_shape *shape, int axis)
{
    const int parts = (int)shape->dim[shape->ndim - 1];
    const int64_t inner = ot__dims_count(shape->dim + axis + 1, shape->ndim - axis - 2);

    return (ot__fourier_side){.outer = shape->dim[axis] * inner * parts,
                              .inner = parts,
                              .point = inner * parts,
                              .used = shape->dim[axis],
                              .points = shape->dim[axis],
                              .parts = parts};
}

static ot__fourier_lines lines_of(const dft *d, const ot_shape *x, const ot_shape *y, int axis,
                                  int64_t n)
{
    ot__fourier_side signal = side_of(x, axis), made = side_of(y, axis);
    ot__fourier_lines l = {.outer = ot__dims_count(x->dim, axis),
                           .inner = ot__dims_count(x->dim + axis + 1, x->ndim - axis - 2),
                           .is_inverse = d->is_inverse != d->is_gradient,
                           .scale = d->is_inverse ? 1 / (double)n : 1};

    signal.used = OT_MIN(signal.used, takes_half(d) ? n / 2 + 1 : n);
    signal.is_doubled = takes_half(d);
    l.from = d->is_gradient ? made : signal;
    l.to = d->is_gradient ? signal : made;
    return l;
}

// The lines along an axis.
static ot_status plan_axis(ot_prep *p, const dft *d, const ot_shape *x, const ot_shape *y, int axis,
                           ot__transform *plan)
{
    const ot_shape *written = d->is_gradient ? x : y;

    OT_TRY(prep_dft_length(p, d, x, y, axis, &plan->n));
    if (ot__dims_count(written->dim, written->ndim) == 0)
        plan->n = 0;
    if (plan->n > 0)
        plan->lines = lines_of(d, x, y, axis, plan->n);
    return OT_OK;
}

// The tables of all plans, one behind the other, where they have bytes of `tables` each.
static ot_status make_dft_tables(dft_state *s, char *tables, const size_t *sizes, size_t work_size)
{
    double *work = ot__alloc(work_size);

    OT_TRY(ot__made(work));
    for (int k = 0; k < OT_MAX_NDIM; k++)
        if (s->plan[k].n > 0) {
            ot__transform_make(&s->plan[k], tables, work);
            tables += sizes[k];
        }
    ot__free(work);
    return OT_OK;
}

// Whether all axes but this one and the last have the same sizes.
static bool agree_beside(const ot_shape *x, const ot_shape *y, int axis)
{
    for (int k = 0; k < x->ndim - 1; k++)
        if (k != axis && x->dim[k] != y->dim[k])
            return false;
    return true;
}

// Whether y may be a transform of x along an axis, where inference knew none.
static bool may_be_along(const ot_prep *p, const dft *d, const ot_shape *x, const ot_shape *y,
                         int axis)
{
    const bool is_given = ot_prep_in(p, d->length) != NULL;
    int64_t n = takes_half(d) ? 2 * (x->dim[axis] - 1) : x->dim[axis];

    if (is_given && !read_constant_int(p, d->length, &n))
        n = y->dim[axis];
    return agree_beside(x, y, axis) && y->dim[axis] == (makes_half(d) ? n / 2 + 1 : n);
}

// The forward transform is of x and makes y.
static ot_status prep_dft(ot_prep *p, const dft *d, const ot_shape *x, const ot_shape *y,
                          const ot__fouriers *by)
{
    dft_state planned = {.axis_input = d->axis, .length_input = d->length}, *s;
    ot__transform_sizes all = {0};
    size_t table_sizes[OT_MAX_NDIM] = {0};

    OT_TRY(prep_dft_axis(p, d, x->ndim, &planned.axis));
    for (int k = 0; k < x->ndim - 1; k++) {
        ot__transform *plan = &planned.plan[k];
        ot__transform_sizes sizes;

        *plan = (ot__transform){.by = by, .n = -1};
        if (planned.axis < 0 ? !may_be_along(p, d, x, y, k) : planned.axis != k)
            continue;
        OT_TRY(plan_axis(p, d, x, y, k, plan));
        if (plan->n == 0)
            continue;
        sizes = ot__transform_plan(plan, ot_prep_threads(p));
        table_sizes[k] = sizes.tables;
        all.tables += sizes.tables;
        all.work = OT_MAX(all.work, sizes.work);
        all.scratch = OT_MAX(all.scratch, sizes.scratch);
    }
    s = ot_prep_state(p, sizeof(*s) + all.tables);
    OT_TRY(ot__made(s));
    *s = planned;
    ot_prep_scratch(p, all.scratch);
    return make_dft_tables(s, (char *)(s + 1), table_sizes, all.work);
}

// Inference may have seen no shape of a gradient: it is checked here.
static ot_status check_dft_grad(ot_prep *p, const dft *d, const ot_shape *x, const ot_shape *y)
{
    bool fits = x->ndim == y->ndim && x->ndim >= 2;
    int axis;

    if (fits) {
        OT_TRY(prep_dft_axis(p, d, x->ndim, &axis));
        fits = (axis < 0 || agree_beside(x, y, axis)) &&
               y->dim[x->ndim - 1] == (takes_half(d) ? 1 : 2) &&
               (x->dim[x->ndim - 1] == 2 || (x->dim[x->ndim - 1] == 1 && !takes_half(d)));
    }
    return fits ? OT_OK
                : ot_prep_fail(p, OT_ERR_INVALID, "dY does not have the shape of the transform");
}

static ot_status prep_dft_or_grad(ot_prep *p, const ot__fouriers *by)
{
    const dft d = read_dft(ot_prep_node(p));
    const ot_shape *in = &ot_prep_in(p, 0)->shape, *out = &ot_prep_out(p, 0)->shape;

    if (!d.is_gradient)
        return prep_dft(p, &d, in, out, by);
    OT_TRY(check_dft_grad(p, &d, out, in));
    return prep_dft(p, &d, out, in, by);
}

static ot_status dft_prep(ot_prep *p)
{
    return prep_dft_or_grad(p, NULL);
}

static ot_status dft_prep_simd(ot_prep *p)
{
    return prep_dft_or_grad(p, ot__fouriers_best());
}

static ot_status choose_plan(const ot_run *r, const ot__transform **plan)
{
    const dft_state *s = r->state;
    const bool has_length = s->length_input < r->n_in && r->in[s->length_input] != NULL;
    int axis = s->axis;

    *plan = NULL;
    if (axis < 0) {
        const ot_arg *given = r->in[s->axis_input];
        const int ndim = r->in[0]->shape.ndim;

        if (given->count != 1 || !ot__axis_normalize(ot__arg_int(given, 0), ndim, &axis) ||
            axis == ndim - 1)
            return ot__error(OT_ERR_INVALID, "axis is not one of the first %d", ndim - 1);
    }
    *plan = &s->plan[axis];
    if ((*plan)->n < 0)
        return ot__error(OT_ERR_INVALID, "axis is %d, another was planned", axis);
    if (has_length && (*plan)->n > 0)
        return ot__check_planned(ot__arg_int(r->in[s->length_input], 0), "points", (*plan)->n);
    return OT_OK;
}

#define RUN(name, suffix)                                                                          \
    static ot_status name(const ot_run *r)                                                         \
    {                                                                                              \
        const ot__transform *plan;                                                                 \
                                                                                                   \
        OT_TRY(choose_plan(r, &plan));                                                             \
        if (plan->n > 0)                                                                           \
            ot__transform_run_##suffix(plan, r->out[0]->data, r->in[0]->data, r->scratch);         \
        return OT_OK;                                                                              \
    }
RUN(dft_run_f32, f32)
RUN(dft_run_f64, f64)
#undef RUN

// ---- gradient ----

static void dft_grad(ot_grad *g)
{
    const ot_node *forward = ot_grad_node(g);
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_emit_shape(g, ot_grad_x(g, X)),
                            ot_grad_x(g, LENGTH), ot_grad_x(g, AXIS)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.DFTGrad", NULL, in, 4, 1);

    ot_emit_int(g, node, "inverse", ot_attr_int(forward, "inverse"));
    ot_emit_int(g, node, "onesided", ot_attr_int(forward, "onesided"));
    if (forward->op->since < AXIS_IS_INPUT_SINCE)
        ot_emit_int(g, node, "axis", ot_attr_int(forward, "axis"));
    ot_grad_set_dx(g, X, ot_emit_output(g, node, 0));
}

// ---- records ----

// The axis becomes a scalar input.
static void dft_raise(ot_upgrade *u)
{
    ot_node *node = ot_upgrade_node(u);

    ot_upgrade_set_int(u, "axis", ot_attr_int(node, "axis"));
    ot_upgrade_ints_to_input(u, "axis", AXIS);
    if (node->n_inputs > AXIS && node->inputs[AXIS] != NULL &&
        node->inputs[AXIS]->constant != NULL) {
        node->inputs[AXIS]->constant->shape = OT_SHAPE_SCALAR;
        node->inputs[AXIS]->shape = OT_SHAPE_SCALAR;
    }
}

static const ot_port dft_in[] = {
    {"input", "T1", 0},
    {"dft_length", "T2", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"axis", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port dft_in_17[] = {
    {"input", "T1", 0},
    {"dft_length", "T2", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port dft_out[] = {{"output", "T1", 0}, {0}};
static const ot_port dft_grad_in[] = {
    {"dOutput", "T1", 0},
    {"shape", "i64", 0},
    {"dft_length", "T2", OT_PORT_OPTIONAL},
    {"axis", "i64", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port dft_grad_out[] = {{"dInput", "T1", 0}, {0}};
// Without `axis` from opset 20 on.
static const ot_attr_spec dft_attrs[] = {
    OT__INT_ATTR("axis", 1),
    OT__FLAG_ATTR("inverse", 0),
    OT__FLAG_ATTR("onesided", 0),
    {0},
};
static const ot_attr_spec dft_grad_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT}, // not given: by the input
    OT__FLAG_ATTR("inverse", 0),
    OT__FLAG_ATTR("onesided", 0),
    {0},
};
static const ot_kernel dft_kernels[] = {
    OT__SIMD_KERNEL("T1: f32", NULL, dft_prep_simd, dft_run_f32),
    OT__REF_KERNEL("T1: f32", dft_prep, dft_run_f32),
    OT__REF_KERNEL("T1: f64", dft_prep, dft_run_f64),
    {0},
};
#define DFT                                                                                        \
    .name = "DFT", .outputs = dft_out, .types = "T1: f32 f64; T2: i32 i64", .infer = dft_infer,    \
    .kernels = dft_kernels, .grad = dft_grad
const ot_op_def ot__op_dft[] = {
    {DFT, .since = 17, .inputs = dft_in_17, .attrs = dft_attrs, .raise = dft_raise},
    {DFT, .since = AXIS_IS_INPUT_SINCE, .inputs = dft_in, .attrs = dft_attrs + 1},
    {0},
};
const ot_op_def ot__op_dft_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "DFTGrad",
     .since = 1,
     .inputs = dft_grad_in,
     .outputs = dft_grad_out,
     .attrs = dft_grad_attrs,
     .types = "T1: f32 f64; T2: i32 i64",
     .infer = dft_grad_infer,
     .kernels = dft_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__dft_grad_expand},
    {0},
};
