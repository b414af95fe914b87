// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "ops/attention/heads.h"
#include "ops/attention/onnx_attention.h"

typedef struct composing {
    ot_grad *g;
    const ot_node *node;
    ot_value *q, *k, *v; // four axes; keys and values with past ones
    ot_value *mask;      // as it is given, or NULL
    int64_t q_heads, kv_heads;
    bool is_split; // inputs of three axes
} composing;

// ---- operands ----

// (batch, heads, positions, elements)
static ot_value *heads_of(const composing *a, int i, int64_t heads)
{
    ot_value *x = ot_grad_x(a->g, i);

    return a->is_split ? ot__emit_heads(a->g, x, heads) : x;
}

static ot_value *emit_behind_past(const composing *a, int past, ot_value *v)
{
    ot_value *const parts[] = {ot_grad_x(a->g, past), v};

    return parts[0] == NULL ? v : ot__emit_concat(a->g, parts, 2, 2);
}

static void read_attention_inputs(composing *a)
{
    ot_grad *g = a->g;

    a->q = heads_of(a, OT__ATT_Q, a->q_heads);
    a->k = heads_of(a, OT__ATT_K, a->kv_heads);
    a->v = heads_of(a, OT__ATT_V, a->kv_heads);
    a->k = emit_behind_past(a, OT__ATT_PAST_KEY, a->k);
    a->v = emit_behind_past(a, OT__ATT_PAST_VALUE, a->v);
    a->mask = ot_grad_x(g, OT__ATT_MASK);
}

// ---- scores ----

static ot_value *emit_products(const composing *a)
{
    const double scale =
        ot_attr_given(a->node, "scale") ? (double)ot_attr_float(a->node, "scale") : NAN;

    return ot__emit_scores(a->g, a->q, ot__emit_repeated_heads(a->g, a->k, a->kv_heads, a->q_heads),
                           scale);
}

// ---- masks ----

static ot_value *emit_both(ot_grad *g, ot_value *a, ot_value *b)
{
    return a == NULL ? b : b == NULL ? a : ot_emit2(g, "And", a, b);
}

// Number i for the query at position i, and with past or padded keys the position that it is of.
static ot_value *emit_query_places(const composing *a)
{
    ot_grad *g = a->g;
    ot_value *length = ot__emit_size(g, a->q, 2), *lengths = ot_grad_x(g, OT__ATT_LENGTHS);
    ot_value *places = ot__emit_axes(g, ot__emit_count_up(g, length), 1, 1), *first;

    if (lengths != NULL)
        first = ot__emit_axes(g, ot_emit2(g, "Sub", lengths, length), 1, 3);
    else if (ot_grad_x(g, OT__ATT_PAST_KEY) != NULL)
        first = ot__emit_size(g, ot_grad_x(g, OT__ATT_PAST_KEY), 2);
    else
        return places;
    return ot_emit2(g, "Add", places, first);
}

static int64_t window_of(const composing *a, const char *attr)
{
    return a->node->op->since >= OT__ATT_HAS_WINDOW_SINCE ? ot_attr_int(a->node, attr) : -1;
}

// Whether some query may have no key at all.
static bool may_be_alone(const composing *a)
{
    return a->mask != NULL || ot_grad_x(a->g, OT__ATT_LENGTHS) != NULL ||
           window_of(a, "left_window_size") >= 0 || window_of(a, "right_window_size") >= 0;
}

// True where a query reads a key, as far as positions say so; NULL: everywhere.
static ot_value *emit_places_read(const composing *a)
{
    ot_grad *g = a->g;
    const int64_t left = window_of(a, "left_window_size"),
                  right = window_of(a, "right_window_size");
    const bool is_causal = ot_attr_int(a->node, "is_causal") != 0;
    ot_value *lengths = ot_grad_x(g, OT__ATT_LENGTHS), *read = NULL, *keys, *queries, *end;

    if (!is_causal && left < 0 && right < 0 && lengths == NULL)
        return NULL;
    keys = ot__emit_count_up(g, ot__emit_size(g, a->k, 2));
    if (is_causal || left >= 0 || right >= 0) {
        queries = emit_query_places(a);
        if (is_causal)
            read = ot_emit2(g, "LessOrEqual", keys, queries);
        if (left >= 0) {
            end = ot_emit2(g, "Sub", queries, ot__emit_scalar(g, left));
            read = emit_both(g, read, ot_emit2(g, "GreaterOrEqual", keys, end));
        }
        if (right >= 0) {
            end = ot_emit2(g, "Add", queries, ot__emit_scalar(g, right));
            read = emit_both(g, read, ot_emit2(g, "LessOrEqual", keys, end));
        }
    }
    if (lengths != NULL) {
        end = ot__emit_axes(g, lengths, 1, 3);
        read = emit_both(g, read, ot_emit2(g, "Less", keys, end));
    }
    return read;
}

// The mask with `rest` for keys that it has nothing for.
static ot_value *emit_padded(const composing *a, ot_value *mask, ot_value *rest)
{
    ot_grad *g = a->g;
    const ot_shape *shape = ot_value_shape(mask);
    const int ndim = shape->ndim;
    static const int64_t zeros[2 * OT_MAX_NDIM] = {0};
    ot_value *parts[2], *missing;

    if (a->node->op->since < OT__ATT_PADS_MASK_SINCE || ndim == 0 ||
        ot__dim_same(shape->dim[ndim - 1], ot_value_shape(a->k)->dim[2]))
        return mask;
    missing = ot__emit_size(g, mask, ndim - 1);
    missing = ot_emit2(g, "Sub", ot__emit_size(g, a->k, 2), missing);
    parts[0] = ot_emit_constant_i64(g, zeros, 2 * ndim - 1);
    parts[1] = ot__emit_axes(g, missing, 0, 1);
    return ot_emit3(g, "Pad", mask, ot__emit_concat(g, parts, 2, 0), rest);
}

static ot_value *emit_false(ot_grad *g)
{
    return ot__emit_tensor(g, OT_BOOL, &OT_SHAPE_SCALAR); // zeros
}

static ot_value *emit_masked(const composing *a, ot_value *scores)
{
    ot_grad *g = a->g;
    ot_value *read = emit_places_read(a), *none = ot_emit_constant(g, -INFINITY, scores), *bias;

    if (a->mask != NULL && ot_value_dtype(a->mask) != OT_BOOL) {
        bias = ot_emit_cast(g, a->mask, ot_value_dtype(scores));
        bias = emit_padded(a, bias, none);
        if (read != NULL)
            bias = ot_emit3(g, "Where", read, bias, none);
        return ot_emit2(g, "Add", scores, bias);
    }
    if (a->mask != NULL)
        read = emit_both(g, read, emit_padded(a, a->mask, emit_false(g)));
    return read == NULL ? scores : ot_emit3(g, "Where", read, scores, none);
}

// ---- probabilities ----

static ot_value *emit_probabilities(const composing *a, ot_value *scores)
{
    ot_grad *g = a->g;
    const ot_dtype dtype = ot_value_dtype(scores);
    const bool is_wide = ot_attr_int(a->node, "softmax_precision") == OT_F64;
    ot_value *p = is_wide ? ot_emit_cast(g, scores, OT_F64) : scores, *is_nan;

    // Narrower types than that of the scores gain nothing, and kernels compute in f32 at least.
    p = p == NULL ? NULL : ot_emit_output(g, ot_emit(g, "Softmax", "axis = -1", &p, 1, 1), 0);
    p = ot_emit_cast(g, p, dtype);
    if (!may_be_alone(a))
        return p;
    is_nan = ot_emit1(g, "IsNaN", p); // no score but -inf
    return ot_emit3(g, "Where", is_nan, ot_emit_constant(g, 0.0, p), p);
}

static ot_value *emit_attended(const composing *a, ot_value *p)
{
    ot_value *v = ot__emit_repeated_heads(a->g, a->v, a->kv_heads, a->q_heads);
    ot_value *y = ot_emit2(a->g, "MatMul", p, ot_emit_cast(a->g, v, ot_value_dtype(p)));

    return a->is_split ? ot__emit_joined_heads(a->g, y) : y;
}

void ot__attention_compose(ot_grad *g)
{
    composing a = {.g = g, .node = ot_grad_node(g)};
    ot_value *steps[OT__ATT_MODES], *y;

    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_x(g, i) != NULL && !ot_value_has_shape(ot_grad_x(g, i)))
            return;
    a.is_split = ot_value_shape(ot_grad_x(g, OT__ATT_Q))->ndim == 3;
    a.q_heads = ot__attention_heads(a.node, ot_value_shape(ot_grad_x(g, OT__ATT_Q)), "q_num_heads");
    a.kv_heads =
        ot__attention_heads(a.node, ot_value_shape(ot_grad_x(g, OT__ATT_K)), "kv_num_heads");
    if (!ot_dim_is_number(a.q_heads) || !ot_dim_is_number(a.kv_heads))
        a.q_heads = a.kv_heads = 1; // as many of both, else the products do not fit
    read_attention_inputs(&a);
    if (a.q == NULL || a.k == NULL || a.v == NULL)
        return;
    steps[OT__ATT_PRODUCTS] = emit_products(&a);
    steps[OT__ATT_CAPPED] =
        ot__emit_softcap(g, steps[OT__ATT_PRODUCTS], (double)ot_attr_float(a.node, "softcap"));
    steps[OT__ATT_MASKED] = emit_masked(&a, steps[OT__ATT_CAPPED]);
    steps[OT__ATT_PROBABILITIES] = emit_probabilities(&a, steps[OT__ATT_MASKED]);
    y = emit_attended(&a, steps[OT__ATT_PROBABILITIES]);
    ot_expand_set(g, OT__ATT_Y, y);
    ot_expand_set(g, OT__ATT_PRESENT_KEY, a.k);
    ot_expand_set(g, OT__ATT_PRESENT_VALUE, a.v);
    ot_expand_set(g, OT__ATT_SCORES, steps[ot_attr_int(a.node, "qk_matmul_output_mode")]);
}
