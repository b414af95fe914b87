// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX Runtime that normalise a sum: Y = LayerNormalization(input + skip + bias), with
// a mean or without one.
#include "op/expand.h"
#include "ops/norm/layer_norm.h"

extern const ot_op_def ot__op_skip_layer_normalization[];

enum { X, SKIP, GAMMA, THIRD };
enum { Y, MEAN, INV_STD, SUM };
enum { BETA_CENTERED = THIRD, BIAS_CENTERED, BIAS_SIMPLIFIED = THIRD };

static bool skip_is_centered(const ot_node *node)
{
    return node->op == ot__op_skip_layer_normalization;
}

static int bias_port(const ot_node *node)
{
    return skip_is_centered(node) ? BIAS_CENTERED : BIAS_SIMPLIFIED;
}

// ---- inference ----

// X's shape, or that of one batch, for all of them.
static bool check_skip(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *skip = ot_infer_shape(c, SKIP);
    const int missing = x->ndim - skip->ndim;

    if (missing != 0 && (x->ndim != 3 || missing != 1))
        return ot__refuse(c, "skip has %d axes, input has %d", skip->ndim, x->ndim);
    for (int k = 0; k < skip->ndim; k++) {
        const int64_t expected = x->dim[k + missing], found = skip->dim[k];

        if (ot__dim_differs(found, expected) && !(x->ndim == 3 && k + missing == 0 && found == 1))
            return ot__refuse(c,
                              "skip has size %" PRId64 " along axis %d, expected input's %" PRId64,
                              found, k, expected);
    }
    return true;
}

bool ot__infer_is_row(ot_infer *c, int i, int64_t size)
{
    const ot_shape *row = ot_infer_shape(c, i);

    if (!ot_infer_has(c, i))
        return true;
    if (row->ndim != 1)
        return ot__refuse(c, "input %d has %d axes, expected 1", i, row->ndim);
    if (ot__dim_differs(row->dim[0], size))
        return ot__refuse(c, "input %d has size %" PRId64 ", expected %" PRId64, i, row->dim[0],
                          size);
    return true;
}

static void skip_layer_norm_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X);
    const bool is_centered = skip_is_centered(ot_infer_node(c));
    const ot_dtype dtype = ot_infer_dtype(c, X);
    ot_shape stats = *x;

    if (x->ndim != 2 && x->ndim != 3) {
        ot_infer_fail(c, "input has %d axes, expected 2 or 3", x->ndim);
        return;
    }
    if (!is_centered && ot_infer_wants(c, MEAN)) {
        ot_infer_fail(c, "output mean is asked for, which this normalisation has not");
        return;
    }
    if (!check_skip(c))
        return;
    for (int i = GAMMA; i <= bias_port(ot_infer_node(c)); i++)
        if (!ot__infer_is_row(c, i, x->dim[x->ndim - 1]))
            return;
    stats.dim[x->ndim - 1] = 1;
    ot_infer_set(c, Y, dtype, x);
    ot_infer_set(c, MEAN, dtype, &stats);
    ot_infer_set(c, INV_STD, dtype, &stats);
    ot_infer_set(c, SUM, dtype, x);
}

// ---- what they are composed of ----

ot_node *ot__emit_layer_norm(ot_grad *g, ot_value *x, ot_value *scale, ot_value *bias,
                             int n_outputs)
{
    ot_value *const in[] = {x, scale, bias};
    ot_node *node;

    if (x == NULL || scale == NULL)
        return NULL;
    node = ot_emit(g, "LayerNormalization", NULL, in, bias == NULL ? 2 : 3, n_outputs);
    ot_emit_float(g, node, "epsilon", ot_attr_float(ot_grad_node(g), "epsilon"));
    return node;
}

static ot_node *emit_simplified(ot_grad *g, ot_value *x, ot_value *scale, int n_outputs)
{
    ot_value *const in[] = {x, scale};
    ot_node *node =
        x == NULL ? NULL : ot_emit(g, "SimplifiedLayerNormalization", NULL, in, 2, n_outputs);

    ot_emit_float(g, node, "epsilon", ot_attr_float(ot_grad_node(g), "epsilon"));
    return node;
}

static void skip_layer_norm_compose(ot_grad *g)
{
    const ot_node *of = ot_grad_node(g);
    const bool is_centered = skip_is_centered(of);
    const bool has_stats = ot_expand_wants(g, MEAN) || ot_expand_wants(g, INV_STD);
    ot_value *bias = ot_grad_x(g, bias_port(of)), *gamma = ot_grad_x(g, GAMMA), *sum, *y;
    ot_value *mean = NULL, *inv_std = NULL;
    ot_node *norm;

    sum = ot_emit2(g, "Add", ot_grad_x(g, X), ot_grad_x(g, SKIP));
    if (bias != NULL)
        sum = ot_emit2(g, "Add", sum, bias);
    if (is_centered)
        norm = ot__emit_layer_norm(g, sum, gamma, ot_grad_x(g, BETA_CENTERED), has_stats ? 3 : 1);
    else
        norm = emit_simplified(g, sum, gamma, has_stats ? 2 : 1);
    y = ot_emit_output(g, norm, 0);
    if (has_stats) {
        mean = is_centered ? ot_emit_output(g, norm, 1) : NULL;
        inv_std = ot_emit_output(g, norm, is_centered ? 2 : 1);
    }
    ot_expand_set(g, Y, y);
    ot_expand_set(g, MEAN, mean);
    ot_expand_set(g, INV_STD, inv_std);
    ot_expand_set(g, SUM, sum);
}

// ---- records ----

enum { KEPT = OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32 };
static const ot_port skip_in[] = {
    {"input", "T", 0},
    {"skip", "T", 0},
    {"gamma", "T", OT_PORT_SCALE | OT_PORT_F32},
    {"beta", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS | OT_PORT_F32},
    {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {0},
};
static const ot_port skip_simplified_in[] = {
    {"input", "T", 0},
    {"skip", "T", 0},
    {"gamma", "T", OT_PORT_SCALE | OT_PORT_F32},
    {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {0},
};
static const ot_port skip_out[] = {
    {"output", "T", 0},
    {"mean", "T", KEPT},
    {"inv_std_var", "T", KEPT},
    {"input_skip_bias_sum", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec skip_attrs[] = {OT__FLOAT_ATTR("epsilon", 1e-12F), {0}};
#define SKIP_NORM(name_, inputs_)                                                                  \
    {                                                                                              \
        .domain = OT__MS, .name = name_, .since = 1, .inputs = inputs_, .outputs = skip_out,       \
        .attrs = skip_attrs, .types = "T: f32 f64", .infer = skip_layer_norm_infer,                \
        .train = skip_layer_norm_compose                                                           \
    }
const ot_op_def ot__op_skip_layer_normalization[] = {
    SKIP_NORM("SkipLayerNormalization", skip_in),
    {0},
};
const ot_op_def ot__op_skip_simplified_layer_normalization[] = {
    SKIP_NORM("SkipSimplifiedLayerNormalization", skip_simplified_in),
    {0},
};
