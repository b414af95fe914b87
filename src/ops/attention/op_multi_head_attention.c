// SPDX-License-Identifier: Apache-2.0
// MultiHeadAttention of ONNX Runtime. Heads of queries, keys and values lie side by side in inputs
// of their own, all in one (packed), the latter two in one, or keys and values have them as an
// axis.
#include "ops/attention/ms_attention.h"

enum {
    QUERY,
    KEY,
    VALUE,
    BIAS,
    MASK,
    ATTENTION_BIAS,
    PAST_KEY,
    PAST_VALUE,
    PAST_LENGTH,
    CACHE_INDIRECTION,
};
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };
enum { PACKED_NDIM = 5 };

// ---- inference ----

static bool check_packed_heads(ot_infer *c, int i, int64_t n, const ot__ms_sizes *s)
{
    const ot_shape *x = ot_infer_shape(c, i);

    return ot__ms_check_size(c, i, 0, x->dim[0], s->batch) &&
           ot__ms_check_size(c, i, 2, x->dim[2], s->heads) &&
           ot__ms_check_size(c, i, 3, x->dim[3], n) &&
           ot__ms_check_size(c, i, 4, x->dim[4], s->head);
}

// Keys and values with an axis for the heads.
static bool check_own_axis(ot_infer *c, ot__ms_sizes *s)
{
    const ot_shape *k = ot_infer_shape(c, KEY), *v = ot_infer_shape(c, VALUE);

    if (v->ndim != 4)
        return ot__refuse(c, "value has %d axes, expected 4 as key", v->ndim);
    if (ot_infer_has(c, PAST_KEY))
        return ot__refuse(c, "past_key is given, key has 4 axes, expected 3");
    s->keys = k->dim[2];
    s->value = v->dim[3];
    return ot__ms_check_size(c, KEY, 0, k->dim[0], s->batch) &&
           ot__ms_check_size(c, VALUE, 0, v->dim[0], s->batch) &&
           ot__ms_check_size(c, KEY, 1, k->dim[1], s->heads) &&
           ot__ms_check_size(c, VALUE, 1, v->dim[1], s->heads) &&
           ot__ms_check_size(c, KEY, 3, k->dim[3], s->head) &&
           ot__ms_check_size(c, VALUE, 2, v->dim[2], s->keys);
}

static bool check_side_by_side(ot_infer *c, ot__ms_sizes *s)
{
    const ot_shape *k = ot_infer_shape(c, KEY), *v = ot_infer_shape(c, VALUE);

    if (v->ndim != 3)
        return ot__refuse(c, "value has %d axes, expected 3 as key", v->ndim);
    s->keys = k->dim[1];
    return ot__ms_check_size(c, KEY, 0, k->dim[0], s->batch) &&
           ot__ms_check_size(c, VALUE, 0, v->dim[0], s->batch) &&
           ot__ms_check_size(c, KEY, 2, k->dim[2], ot_infer_shape(c, QUERY)->dim[2]) &&
           ot__ms_check_size(c, VALUE, 1, v->dim[1], s->keys) &&
           ot__ms_check_heads(c, VALUE, v->dim[2], &s->value);
}

static bool read_operands(ot_infer *c, ot__ms_sizes *s)
{
    const ot_shape *q = ot_infer_shape(c, QUERY), *k = ot_infer_shape(c, KEY);
    const bool has_key = ot_infer_has(c, KEY), has_value = ot_infer_has(c, VALUE);
    const int ndim = has_key ? 3 : PACKED_NDIM;

    if (q->ndim != ndim)
        return ot__refuse(c, "query has %d axes, expected %d %s key", q->ndim, ndim,
                          has_key ? "with" : "without");
    if (has_key && k->ndim != 3 && k->ndim != 4 && k->ndim != PACKED_NDIM)
        return ot__refuse(c, "key has %d axes, expected 3, 4 or 5", k->ndim);
    if (has_value != (has_key && k->ndim != PACKED_NDIM))
        return ot__refuse(c, has_value ? "value is given beside packed keys and values"
                                       : "key is given without value");
    *s = (ot__ms_sizes){.batch = q->dim[0],
                        .heads = ot_attr_int(ot_infer_node(c), "num_heads"),
                        .queries = q->dim[1],
                        .keys = has_key ? k->dim[1] : q->dim[1]};
    if (!ot__ms_check_heads(c, QUERY, has_key ? q->dim[2] : ot_dim_unknown(), &s->head))
        return false;
    if (!has_key)
        s->head = q->dim[4];
    s->value = s->head;
    if (!has_key)
        return check_packed_heads(c, QUERY, 3, s);
    if (k->ndim == PACKED_NDIM)
        return check_packed_heads(c, KEY, 2, s);
    return k->ndim == 4 ? check_own_axis(c, s) : check_side_by_side(c, s);
}

static bool check_projection_bias(ot_infer *c, const ot__ms_sizes *s)
{
    const ot_shape *bias = ot_infer_shape(c, BIAS);
    const int64_t hidden = ot_infer_mul(c, s->heads, s->head);
    int64_t expected;

    if (!ot_infer_has(c, BIAS))
        return true;
    if (bias->ndim != 1)
        return ot__refuse(c, "bias has %d axes, expected 1", bias->ndim);
    if (ot_infer_has(c, KEY) && ot_infer_shape(c, KEY)->ndim != 3)
        return ot__refuse(c, "bias is given, key has %d axes, expected 3",
                          ot_infer_shape(c, KEY)->ndim);
    expected = ot_infer_mul(c, s->heads, s->value);
    expected = ot_infer_add(c, ot_infer_mul(c, 2, hidden), expected);
    return ot__ms_check_size(c, BIAS, 0, bias->dim[0], expected);
}

// Keys and values from before, which count then.
static bool read_past_keys(ot_infer *c, ot__ms_sizes *s)
{
    const int64_t sizes[] = {s->head, s->value};

    if (ot_infer_has(c, PAST_KEY) != ot_infer_has(c, PAST_VALUE))
        return ot__refuse(c, "past_key and past_value are given together or not at all");
    if (!ot_infer_has(c, PAST_KEY))
        return true;
    for (int i = PAST_KEY; i <= PAST_VALUE; i++) {
        const ot_shape *past = ot_infer_shape(c, i);

        if (past->ndim != 4)
            return ot__refuse(c, "input %d has %d axes, expected 4", i, past->ndim);
        if (!ot__ms_check_size(c, i, 0, past->dim[0], s->batch) ||
            !ot__ms_check_size(c, i, 1, past->dim[1], s->heads) ||
            !ot__ms_check_size(c, i, 2, past->dim[2], ot_infer_shape(c, PAST_KEY)->dim[2]) ||
            !ot__ms_check_size(c, i, 3, past->dim[3], sizes[i - PAST_KEY]))
            return false;
    }
    s->keys = ot_infer_add(c, s->keys, ot_infer_shape(c, PAST_KEY)->dim[2]);
    return true;
}

static void multi_head_infer(ot_infer *c)
{
    const ot_dtype dtype = ot_infer_dtype(c, QUERY);
    ot__ms_sizes s;

    if (!read_operands(c, &s) || !check_projection_bias(c, &s) || !read_past_keys(c, &s) ||
        !ot__ms_check_mask(c, MASK, &s, false) || !ot__ms_check_bias(c, ATTENTION_BIAS, &s) ||
        !ot__ms_refuse_given(c, PAST_LENGTH, "past_sequence_length") ||
        !ot__ms_refuse_given(c, CACHE_INDIRECTION, "cache_indirection"))
        return;
    ot_infer_set(c, Y, dtype, &OT_SHAPE(s.batch, s.queries, ot_infer_mul(c, s.heads, s.value)));
    ot_infer_set(c, PRESENT_KEY, dtype, &OT_SHAPE(s.batch, s.heads, s.keys, s.head));
    ot_infer_set(c, PRESENT_VALUE, dtype, &OT_SHAPE(s.batch, s.heads, s.keys, s.value));
    ot_infer_set(c, SCORES, dtype, &OT_SHAPE(s.batch, s.heads, s.queries, s.keys));
}

// ---- what it is composed of ----

static void emit_split_sizes(ot_grad *g, ot_value *x, int64_t axis, ot_value *sizes, int n,
                             ot_value **parts)
{
    ot_value *const in[] = {x, sizes};
    ot_node *node = x == NULL || sizes == NULL ? NULL : ot_emit(g, "Split", NULL, in, 2, n);

    ot_emit_int(g, node, "axis", axis);
    for (int i = 0; i < n; i++)
        parts[i] = ot_emit_output(g, node, i);
}

// What lies side by side along axis 3, each with heads as axis 2.
static void emit_unpacked(ot_grad *g, ot_value *x, int n, ot_value **parts)
{
    static const int64_t ones[] = {1, 1, 1}, axis[] = {3};

    emit_split_sizes(g, x, 3, ot_emit_constant_i64(g, ones, n), n, parts);
    for (int i = 0; i < n; i++)
        parts[i] = ot_emit2(g, "Squeeze", parts[i], ot_emit_constant_i64(g, axis, 1));
}

// The elements of all heads of x at one position, as a list of one number.
static ot_value *emit_hidden(ot_grad *g, ot_value *x)
{
    const int64_t heads = ot_attr_int(ot_grad_node(g), "num_heads");

    if (x == NULL || ot_value_shape(x)->ndim == 3)
        return ot__emit_extents(g, x, 2, 3);
    return ot__emit_times(g, ot__emit_extents(g, x, 3, 4), (double)heads);
}

// x and its part of the bias.
static ot_value *emit_biased(ot_grad *g, ot_value *x, ot_value *bias)
{
    const int64_t dims[] = {ot_attr_int(ot_grad_node(g), "num_heads"), -1};

    if (x != NULL && ot_value_shape(x)->ndim == 4)
        bias = ot__emit_reshape(g, bias, dims, 2);
    return ot_emit2(g, "Add", x, bias);
}

static void emit_all_biased(ot_grad *g, ot_value **parts)
{
    ot_value *bias = ot_grad_x(g, BIAS), *sizes[3], *biases[3];

    if (bias == NULL)
        return;
    for (int i = 0; i < 3; i++)
        sizes[i] = emit_hidden(g, parts[i]);
    emit_split_sizes(g, bias, 0, ot__emit_concat(g, sizes, 3, 0), 3, biases);
    for (int i = 0; i < 3; i++)
        parts[i] = emit_biased(g, parts[i], biases[i]);
}

// Queries, keys and values, with heads side by side or as axis 2; or keys and values with heads as
// axis 1, where there is no bias.
static void emit_operands(ot_grad *g, ot_value **parts)
{
    ot_value *key = ot_grad_x(g, KEY);

    parts[0] = ot_grad_x(g, QUERY);
    parts[1] = key;
    parts[2] = ot_grad_x(g, VALUE);
    if (key == NULL)
        emit_unpacked(g, parts[0], 3, parts);
    else if (ot_value_shape(key)->ndim == PACKED_NDIM)
        emit_unpacked(g, key, 2, parts + 1);
    emit_all_biased(g, parts);
}

static ot_value *emit_head_axis(ot_grad *g, ot_value *x, bool is_own_axis)
{
    if (x == NULL || is_own_axis)
        return x;
    return ot_value_shape(x)->ndim == 4
               ? ot__emit_swapped(g, x)
               : ot__emit_heads(g, x, ot_attr_int(ot_grad_node(g), "num_heads"));
}

static ot_value *emit_after(ot_grad *g, int past, ot_value *x)
{
    ot_value *const parts[] = {ot_grad_x(g, past), x};

    return parts[0] == NULL ? x : ot__emit_concat(g, parts, 2, 2);
}

static void multi_head_compose(ot_grad *g)
{
    const bool is_own_axis =
        ot_grad_x(g, KEY) != NULL && ot_value_shape(ot_grad_x(g, KEY))->ndim == 4;
    ot__ms_attention a = {.mask = ot_grad_x(g, MASK),
                          .bias = ot_grad_x(g, ATTENTION_BIAS),
                          .past_key = ot_grad_x(g, PAST_KEY),
                          .is_causal = ot_attr_int(ot_grad_node(g), "unidirectional") != 0};
    ot_value *parts[3], *y;
    ot__ms_scores scores;

    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_x(g, i) != NULL && !ot_value_has_shape(ot_grad_x(g, i)))
            return;
    emit_operands(g, parts);
    a.q = emit_head_axis(g, parts[0], false);
    a.k = emit_after(g, PAST_KEY, emit_head_axis(g, parts[1], is_own_axis));
    a.v = emit_after(g, PAST_VALUE, emit_head_axis(g, parts[2], is_own_axis));
    if (a.q == NULL || a.k == NULL || a.v == NULL)
        return;
    y = ot__ms_attention_emit(g, &a, &scores);
    ot_expand_set(g, Y, y);
    ot_expand_set(g, PRESENT_KEY, a.k);
    ot_expand_set(g, PRESENT_VALUE, a.v);
    ot_expand_set(g, SCORES, scores.masked);
}

// ---- record ----

static const ot_port multi_head_in[] = {
    {"query", "T", 0},
    {"key", "T", OT_PORT_OPTIONAL},
    {"value", "T", OT_PORT_OPTIONAL},
    {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {"key_padding_mask", "M", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"attention_bias", "T", OT_PORT_OPTIONAL},
    {"past_key", "T", OT_PORT_OPTIONAL},
    {"past_value", "T", OT_PORT_OPTIONAL},
    {"past_sequence_length", "M", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"cache_indirection", "M", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port multi_head_out[] = {
    {"output", "T", 0},
    {"present_key", "T", OT_PORT_OPTIONAL},
    {"present_value", "T", OT_PORT_OPTIONAL},
    {"qk", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec multi_head_attrs[] = {OT__MS_ATTENTION_ATTRS, {0}};
const ot_op_def ot__op_multi_head_attention[] = {
    {.domain = OT__MS,
     .name = "MultiHeadAttention",
     .since = 1,
     .inputs = multi_head_in,
     .outputs = multi_head_out,
     .attrs = multi_head_attrs,
     .types = "T: f32 f64; M: i32",
     .infer = multi_head_infer,
     .train = multi_head_compose},
    {0},
};
