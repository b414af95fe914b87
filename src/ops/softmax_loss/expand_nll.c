// SPDX-License-Identifier: Apache-2.0
// The gradients of the losses over class labels in ONNX's operators.
#include "op/expand.h"
#include "ops/softmax_loss/nll.h"

#include <string.h>

// The weight of every label, 0 for those that are ignored; labels then hold 0 in their place, so
// that they can be looked up.
static ot_value *emit_weights(ot_grad *g, ot_value **labels)
{
    ot_value *scores = ot_grad_x(g, G_SCORES), *weight = ot_grad_x(g, G_WEIGHT), *each, *ignored;
    const ot_node *node = ot_grad_node(g);
    const bool ignores = ot_attr_given(node, "ignore_index");
    ot_value *zero = ot_emit_constant(g, 0.0, *labels), *w_zero, *w_one;

    w_zero = ot_emit_constant(g, 0.0, scores);
    w_one = ot_emit_constant(g, 1.0, scores);
    if (!ignores)
        return weight ? ot_emit2(g, "Gather", weight, *labels)
                      : ot_emit2(g, "Expand", w_one, ot_emit_shape(g, *labels));
    ignored = ot_emit2(g, "Equal", *labels,
                       ot_emit_constant(g, (double)ot_attr_int(node, "ignore_index"), *labels));
    *labels = ot_emit3(g, "Where", ignored, zero, *labels);
    each = weight ? ot_emit2(g, "Gather", weight, *labels) : w_one;
    return ot_emit3(g, "Where", ignored, w_zero, each);
}

// What of dY each label gets before its weight: for the mean the share of the weights' sum, none
// when that is 0.
static ot_value *emit_share(ot_grad *g, ot_value *weights)
{
    const char *reduction = ot_attr_string(ot_grad_node(g), "reduction");
    ot_value *dy = ot_grad_x(g, G_DY), *total, *zero, *is_zero;
    int64_t axes[OT_MAX_NDIM];
    int n;

    if (!weights || strcmp(reduction, "mean") != 0)
        return dy;
    n = ot_value_shape(weights)->ndim;
    for (int k = 0; k < n; k++)
        axes[k] = k;
    total = ot__emit_sum(g, weights, axes, n, false);
    zero = ot_emit_constant(g, 0.0, weights);
    is_zero = ot_emit2(g, "Equal", total, zero);
    total = ot_emit3(g, "Where", is_zero, ot_emit_constant(g, 1.0, weights), total);
    return ot_emit3(g, "Where", is_zero, zero, ot_emit2(g, "Div", dy, total));
}

// 1 where a class is the label, as (N, C, d...).
static ot_value *emit_one_hot(ot_grad *g, ot_value *labels, ot_value *scores)
{
    const int ndim = ot_value_shape(scores)->ndim;
    const int64_t axis = 1;
    int64_t dims[OT_MAX_NDIM] = {-1};
    ot_value *classes = ot__emit_count_up(g, ot__emit_at(g, ot_emit_shape(g, scores), 1));

    for (int k = 1; k < ndim - 1; k++)
        dims[k] = 1;
    classes = ot__emit_reshape(g, classes, dims, ndim - 1);
    labels = ot_emit2(g, "Unsqueeze", labels, ot_emit_constant_i64(g, &axis, 1));
    return ot_emit_cast(g, ot_emit2(g, "Equal", labels, classes), ot_value_dtype(scores));
}

static void expand(ot_grad *g, bool softmax)
{
    const int64_t axis = 1;
    ot_value *scores = ot_grad_x(g, G_SCORES),
             *labels = ot_emit_cast(g, ot_grad_x(g, G_LABELS), OT_I64);
    ot_value *weights, *column, *each, *one_hot, *slope;

    if (!labels || !ot_value_has_shape(scores) || !ot_value_has_shape(labels))
        return;
    weights = emit_weights(g, &labels);
    column = ot_emit_constant_i64(g, &axis, 1);
    each = ot_emit2(g, "Unsqueeze", ot_emit2(g, "Mul", weights, emit_share(g, weights)), column);
    one_hot = emit_one_hot(g, labels, scores);
    slope = softmax ? ot_emit2(g, "Sub", ot_emit1(g, "Exp", scores), one_hot)
                    : ot_emit1(g, "Neg", one_hot);
    ot_expand_set(g, 0, ot_emit2(g, "Mul", slope, each));
}

void ot__sce_grad_expand(ot_grad *g)
{
    expand(g, true);
}

void ot__nll_grad_expand(ot_grad *g)
{
    expand(g, false);
}
