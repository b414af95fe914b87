// SPDX-License-Identifier: Apache-2.0
// LRN: Y = X / (bias + alpha / size * the sum of squares over `size` channels around X)^beta.
#include "kernels/kernels.h"
#include "op/expand.h"

#include <math.h>

enum { DY, X }; // inputs of the gradient

typedef struct lrn_state {
    ot__lrn lrn;
    int n_parts;
} lrn_state;

// Channels before one and behind it that count; that there are no more than `channels` is no loss.
static void read_neighbours(const ot_node *node, int64_t channels, int64_t *before, int64_t *after)
{
    const int64_t others = ot_attr_int(node, "size") - 1;

    *before = OT_MIN(others / 2, channels);
    *after = OT_MIN(others - others / 2, channels);
}

static void lrn_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);

    if (x->ndim < 2)
        ot_infer_fail(c, "X has %d axes, expected at least 2", x->ndim);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), x);
}

static void lrn_grad_infer(ot_infer *c)
{
    if (ot__infer_matches(c, DY, X))
        lrn_infer(c);
}

static lrn_state *make_lrn_state(ot_prep *p)
{
    const ot_shape *x = &ot_prep_in(p, 0)->shape;
    const ot_node *node = ot_prep_node(p);
    lrn_state *s = ot_prep_state(p, sizeof *s);

    if (!s)
        return NULL;
    s->lrn =
        (ot__lrn){.n = x->dim[0],
                  .channels = x->dim[1],
                  .inner = 1,
                  .alpha = (double)ot_attr_float(node, "alpha") / (double)ot_attr_int(node, "size"),
                  .beta = (double)ot_attr_float(node, "beta"),
                  .bias = (double)ot_attr_float(node, "bias")};
    for (int k = 2; k < x->ndim; k++)
        s->lrn.inner *= x->dim[k];
    read_neighbours(node, x->dim[1], &s->lrn.before, &s->lrn.after);
    return s;
}

static ot_status lrn_prepare(ot_prep *p)
{
    return ot__made(make_lrn_state(p));
}

static ot_status lrn_grad_prepare(ot_prep *p)
{
    const int64_t count = ot_prep_in(p, X)->count;
    lrn_state *s = make_lrn_state(p);
    size_t doubles;

    OT_TRY(ot__made(s));
    s->n_parts = (int)OT_MIN((int64_t)ot_prep_threads(p), count / OT_PAR_MIN + 1);
    if (ot__size_mul_overflows((size_t)s->lrn.channels,
                               (size_t)s->n_parts * OT__LRN_PIECE * OT__LRN_ROWS, &doubles) ||
        doubles > SIZE_MAX / sizeof(double))
        return ot_prep_fail(p, OT_ERR_INVALID, "X has too many channels: %" PRId64,
                            s->lrn.channels);
    ot_prep_scratch(p, doubles * sizeof(double));
    return OT_OK;
}

#define TEMPLATE "ops/norm/lrn.tmpl.h"
#include "kernels/by_float.tmpl.h"

static void lrn_grad(ot_grad *g)
{
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.LRNGrad", NULL, in, 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

// ---- in ONNX's operators ----

// Sums over `before` channels before each and `after` behind it: those of an average pool.
static ot_value *emit_channel_sums(ot_grad *g, ot_value *v, int64_t before, int64_t after)
{
    const int64_t kernel[] = {before + 1 + after, 1}, pads[] = {before, 0, after, 0};
    const int64_t dims[] = {0, 1, ot_value_shape(v)->dim[1], -1};
    ot_value *rows = ot__emit_reshape(g, v, dims, 4), *sums;
    ot_node *node = ot_emit(g, "AveragePool", "count_include_pad = 1", &rows, 1, 1);

    ot_emit_ints(g, node, "kernel_shape", kernel, 2);
    ot_emit_ints(g, node, "pads", pads, 4);
    sums = ot__emit_times(g, ot_emit_output(g, node, 0), (double)kernel[0]);
    return ot_emit_reshape_like(g, sums, v);
}

// With D the divisor:  dX = dY * D^-beta - 2 alpha beta X * sums of dY * X * D^(-beta - 1).
static void lrn_grad_expand(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    ot_value *dy = ot_grad_x(g, DY), *x = ot_grad_x(g, X), *d, *power, *terms, *far;
    const double beta = (double)ot_attr_float(node, "beta");
    const double alpha = (double)ot_attr_float(node, "alpha") / (double)ot_attr_int(node, "size");
    int64_t before, after;

    if (!ot_value_has_shape(x) || !ot_dim_is_number(ot_value_shape(x)->dim[1]))
        return;
    read_neighbours(node, ot_value_shape(x)->dim[1] - 1, &before, &after);
    d = ot__emit_times(g, emit_channel_sums(g, ot_emit2(g, "Mul", x, x), before, after), alpha);
    d = ot_emit2(g, "Add", d, ot_emit_constant(g, (double)ot_attr_float(node, "bias"), x));
    power = ot_emit2(g, "Pow", d, ot_emit_constant(g, -beta, x));
    power = ot_emit2(g, "Mul", dy, power);
    terms = ot_emit2(g, "Div", ot_emit2(g, "Mul", power, x), d);
    far = emit_channel_sums(g, terms, after, before);
    far = ot_emit2(g, "Mul", x, ot__emit_times(g, far, 2 * alpha * beta));
    ot_expand_set(g, 0, ot_emit2(g, "Sub", power, far));
}

// ---- records ----

static const ot_port lrn_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {0}};
static const ot_attr_spec lrn_attrs[] = {
    OT__FLOAT_ATTR("alpha", 1e-4f),
    OT__FLOAT_ATTR("beta", 0.75f),
    OT__FLOAT_ATTR("bias", 1.0f),
    {.name = "size",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_REQUIRED,
     .low = 1,
     .high = INFINITY},
    {0},
};
static const ot_kernel lrn_kernels[] = {OT__REF_KERNELS(lrn_prepare, lrn_run), {0}};
static const ot_kernel lrn_grad_kernels[] = {OT__REF_KERNELS(lrn_grad_prepare, lrn_grad_run), {0}};
const ot_op_def ot__op_lrn[] = {
    {.name = "LRN",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = lrn_attrs,
     .types = "T: f32 f64",
     .infer = lrn_infer,
     .kernels = lrn_kernels,
     .grad = lrn_grad,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
const ot_op_def ot__op_lrn_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "LRNGrad",
     .since = 1,
     .inputs = lrn_grad_in,
     .outputs = ot__gradient_out,
     .attrs = lrn_attrs,
     .types = "T: f32 f64",
     .infer = lrn_grad_infer,
     .kernels = lrn_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = lrn_grad_expand,
     .by_image = {.in = 3, .out = 1}},
    {0},
};
