// SPDX-License-Identifier: Apache-2.0
// A key that a mask takes away gets `mask_filter_value` added to its score, and one behind the
// query the lowest number for it.
#include "ops/attention/ms_attention.h"

#include <float.h>
#include <math.h>

// ---- checks ----

bool ot__ms_check_size(ot_infer *c, int i, int axis, int64_t found, int64_t expected)
{
    if (!ot__dim_differs(found, expected))
        return true;
    return ot__refuse(c, "input %d has size %" PRId64 " along axis %d, expected %" PRId64, i, found,
                      axis, expected);
}

static bool are_ends_and_starts(const ot_node *node, const ot_shape *mask, int64_t batch)
{
    return mask->ndim == 1 && !ot__dim_same(mask->dim[0], batch) &&
           ot__dim_same(mask->dim[0], ot__dim_mul(node->graph->model, 2, batch));
}

bool ot__ms_check_mask(ot_infer *c, int i, const ot__ms_sizes *s, bool has_starts)
{
    const ot_shape *mask = ot_infer_shape(c, i);

    if (!ot_infer_has(c, i))
        return true;
    if (mask->ndim < 1 || mask->ndim > 3)
        return ot__refuse(c, "input %d, a mask, has %d axes, expected 1 to 3", i, mask->ndim);
    if (has_starts && are_ends_and_starts(ot_infer_node(c), mask, s->batch))
        return true;
    if (!ot__ms_check_size(c, i, 0, mask->dim[0], s->batch))
        return false;
    if (mask->ndim == 3 && !ot__ms_check_size(c, i, 1, mask->dim[1], s->queries))
        return false;
    return mask->ndim == 1 ||
           ot__ms_check_size(c, i, mask->ndim - 1, mask->dim[mask->ndim - 1], s->keys);
}

bool ot__ms_check_bias(ot_infer *c, int i, const ot__ms_sizes *s)
{
    const ot_shape *bias = ot_infer_shape(c, i);
    const int64_t expected[] = {s->batch, s->heads, s->queries, s->keys};

    if (!ot_infer_has(c, i))
        return true;
    if (bias->ndim != 4)
        return ot__refuse(c, "attention_bias has %d axes, expected 4", bias->ndim);
    for (int k = 0; k < 4; k++)
        if (!(k < 2 && bias->dim[k] == 1) && !ot__ms_check_size(c, i, k, bias->dim[k], expected[k]))
            return false;
    return true;
}

bool ot__ms_check_heads(ot_infer *c, int i, int64_t hidden, int64_t *size)
{
    const int64_t heads = ot_attr_int(ot_infer_node(c), "num_heads");

    *size = ot_dim_unknown();
    if (heads < 1)
        return ot__refuse(c, "num_heads is %" PRId64 ", expected at least 1", heads);
    if (!ot_dim_is_number(hidden))
        return true;
    if (hidden % heads != 0)
        return ot__refuse(c,
                          "%" PRId64 " elements of input %d are not a multiple of num_heads, "
                          "%" PRId64,
                          hidden, i, heads);
    *size = hidden / heads;
    return true;
}

bool ot__ms_refuse_given(ot_infer *c, int i, const char *name)
{
    return !ot_infer_has(c, i) || ot__refuse(c, "input %s is not supported", name);
}

// ---- masks ----

// Elements of a list from `first` on as many as there are batches, with axes for heads, queries and
// keys.
static ot_value *emit_for_batches(ot_grad *g, ot_value *list, ot_value *first, ot_value *batch)
{
    ot_value *part = ot_emit3(g, "Slice", list, first, ot_emit2(g, "Add", first, batch));

    return ot__emit_axes(g, part, 1, 3);
}

// Keys that lie before the ends, which the mask begins with, and not before the starts behind them.
// Where there may be no starts they are 0.
static ot_value *emit_between(ot_grad *g, const ot__ms_attention *a, ot_value *keys)
{
    ot_value *mask = ot_emit_cast(g, a->mask, OT_I64), *batch = ot__emit_extents(g, a->q, 0, 1);
    ot_value *parts[] = {mask, ot__emit_zeros(g, batch, mask)}, *ends, *starts, *kept;

    ends = emit_for_batches(g, mask, ot_emit_constant_i64(g, &(int64_t){0}, 1), batch);
    starts = emit_for_batches(g, ot__emit_concat(g, parts, 2, 0), batch, batch);
    kept = ot_emit2(g, "Less", keys, ends);
    return ot_emit2(g, "And", kept, ot_emit2(g, "GreaterOrEqual", keys, starts));
}

// True where a key stays, with four axes.
static ot_value *emit_kept_keys(ot_grad *g, const ot__ms_attention *a)
{
    const ot_shape *shape = ot_value_shape(a->mask);
    ot_value *keys, *ends, *kept;

    if (shape->ndim > 1) {
        kept = ot_emit2(g, "Greater", a->mask, ot_emit_constant(g, 0, a->mask));
        return ot__emit_axes(g, kept, 1, 4 - shape->ndim);
    }
    keys = ot__emit_count_up(g, ot__emit_size(g, a->k, 2));
    if (a->has_starts && !ot__dim_same(shape->dim[0], ot_value_shape(a->q)->dim[0]))
        return emit_between(g, a, keys);
    ends = ot__emit_axes(g, ot_emit_cast(g, a->mask, OT_I64), 1, 3);
    return ot_emit2(g, "Less", keys, ends);
}

// True for keys up to a query's own, as far back as the window goes.
static ot_value *emit_past_keys(ot_grad *g, const ot__ms_attention *a)
{
    ot_value *keys = ot__emit_count_up(g, ot__emit_size(g, a->k, 2));
    ot_value *queries = ot__emit_axes(g, ot__emit_count_up(g, ot__emit_size(g, a->q, 2)), 1, 1);
    ot_value *read;

    if (a->past_key != NULL)
        queries = ot_emit2(g, "Add", queries, ot__emit_size(g, a->past_key, 2));
    read = ot_emit2(g, "LessOrEqual", keys, queries);
    if (a->window <= 0)
        return read;
    queries = ot_emit2(g, "Sub", queries, ot__emit_scalar(g, a->window));
    return ot_emit2(g, "And", read, ot_emit2(g, "Greater", keys, queries));
}

// One sum, or one choice, so that attention is found as such.
static ot_value *emit_with_masks(ot_grad *g, const ot__ms_attention *a, ot_value *scores)
{
    ot_value *bias = a->bias, *lowest = ot_emit_constant(g, (double)-FLT_MAX, scores), *masked;

    if (a->mask != NULL) {
        const double fill = (double)ot_attr_float(ot_grad_node(g), "mask_filter_value");
        ot_value *kept = emit_kept_keys(g, a), *zero = ot_emit_constant(g, 0, scores);

        masked = ot_emit3(g, "Where", kept, zero, ot_emit_constant(g, fill, scores));
        bias = bias == NULL ? masked : ot_emit2(g, "Add", bias, masked);
    }
    if (a->is_causal && bias == NULL)
        return ot_emit3(g, "Where", emit_past_keys(g, a), scores, lowest);
    if (a->is_causal)
        bias = ot_emit3(g, "Where", emit_past_keys(g, a), bias, lowest);
    return bias == NULL ? scores : ot_emit2(g, "Add", scores, bias);
}

ot_value *ot__ms_attention_emit(ot_grad *g, const ot__ms_attention *a, ot__ms_scores *scores)
{
    const double scale = (double)ot_attr_float(ot_grad_node(g), "scale");
    ot_value *p = ot__emit_scores(g, a->q, a->k, scale == 0 ? NAN : scale);

    scores->masked = p = emit_with_masks(g, a, ot__emit_softcap(g, p, a->softcap));
    p = p == NULL ? NULL : ot_emit_output(g, ot_emit(g, "Softmax", "axis = -1", &p, 1, 1), 0);
    scores->probabilities = p;
    return ot__emit_joined_heads(g, ot_emit2(g, "MatMul", p, a->v));
}
