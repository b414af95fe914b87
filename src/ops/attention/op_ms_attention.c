// SPDX-License-Identifier: Apache-2.0
// Attention of ONNX Runtime: queries, keys and values are one product of the input, with heads side
// by side; keys and values from before are one tensor.
#include "ops/attention/ms_attention.h"

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, ATTENTION_BIAS, PAST_LENGTH };
enum { Y, PRESENT };

// The elements of all heads of queries, keys and values at one position, as far as known.
static void read_hidden_sizes(const ot_node *node, const ot_shape *weights, int64_t *sizes)
{
    int n;
    const int64_t *given = ot_attr_ints(node, "qkv_hidden_sizes", &n);

    for (int i = 0; i < 3; i++)
        sizes[i] = given != NULL                       ? given[i]
                   : ot_dim_is_number(weights->dim[1]) ? weights->dim[1] / 3
                                                       : ot_dim_unknown();
}

// ---- inference ----

static bool check_unsupported(ot_infer *c)
{
    static const char *const names[] = {"do_rotary", "past_present_share_buffer"};
    const ot_node *node = ot_infer_node(c);

    for (size_t i = 0; i < OT_COUNT(names); i++)
        if (ot_attr_int(node, names[i]) != 0)
            return ot__refuse(c, "%s is not supported", names[i]);
    return ot__ms_refuse_given(c, PAST_LENGTH, "past_sequence_length");
}

static bool check_hidden_sizes(ot_infer *c, int64_t *sizes)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *weights = ot_infer_shape(c, WEIGHTS);
    int n;
    const int64_t *given = ot_attr_ints(node, "qkv_hidden_sizes", &n);
    int64_t total = 0;

    if (given == NULL && ot_dim_is_number(weights->dim[1]) && weights->dim[1] % 3 != 0)
        return ot__refuse(c, "weights have %" PRId64 " columns, expected a multiple of 3",
                          weights->dim[1]);
    if (given != NULL && n != 3)
        return ot__refuse(c, "qkv_hidden_sizes has %d entries, expected 3", n);
    read_hidden_sizes(node, weights, sizes);
    if (given == NULL)
        return true;
    for (int i = 0; i < 3; i++) {
        if (sizes[i] < 1 || sizes[i] > INT32_MAX)
            return ot__refuse(c, "qkv_hidden_sizes has entry %" PRId64 ", expected 1 to %d",
                              sizes[i], INT32_MAX);
        total += sizes[i];
    }
    if (sizes[0] != sizes[1])
        return ot__refuse(c, "queries have hidden size %" PRId64 ", keys %" PRId64, sizes[0],
                          sizes[1]);
    return ot__ms_check_size(c, WEIGHTS, 1, weights->dim[1], total);
}

static bool check_projection(ot_infer *c, int64_t *sizes)
{
    const ot_shape *x = ot_infer_shape(c, INPUT), *weights = ot_infer_shape(c, WEIGHTS);
    const ot_shape *bias = ot_infer_shape(c, BIAS);

    if (x->ndim != 3 || weights->ndim != 2)
        return ot__refuse(c, "input and weights have %d and %d axes, expected 3 and 2", x->ndim,
                          weights->ndim);
    if (!ot__ms_check_size(c, WEIGHTS, 0, weights->dim[0], x->dim[2]) ||
        !check_hidden_sizes(c, sizes))
        return false;
    if (!ot_infer_has(c, BIAS))
        return true;
    if (bias->ndim != 1)
        return ot__refuse(c, "bias has %d axes, expected 1", bias->ndim);
    return ot__ms_check_size(c, BIAS, 0, bias->dim[0], weights->dim[1]);
}

// Keys and values have heads of one size where they stand in one tensor.
static bool check_one_size(ot_infer *c, const ot__ms_sizes *s)
{
    if (!ot__dim_differs(s->head, s->value))
        return true;
    return ot__refuse(c,
                      "heads of keys and values have sizes %" PRId64 " and %" PRId64
                      ", expected one for past and present",
                      s->head, s->value);
}

static bool read_past_state(ot_infer *c, ot__ms_sizes *s)
{
    const ot_shape *past = ot_infer_shape(c, PAST);

    if ((ot_infer_has(c, PAST) || ot_infer_wants(c, PRESENT)) && !check_one_size(c, s))
        return false;
    if (!ot_infer_has(c, PAST))
        return true;
    if (past->ndim != 5)
        return ot__refuse(c, "past has %d axes, expected 5", past->ndim);
    if (!ot__ms_check_size(c, PAST, 0, past->dim[0], 2) ||
        !ot__ms_check_size(c, PAST, 1, past->dim[1], s->batch) ||
        !ot__ms_check_size(c, PAST, 2, past->dim[2], s->heads) ||
        !ot__ms_check_size(c, PAST, 4, past->dim[4], s->head))
        return false;
    s->keys = ot_infer_add(c, s->keys, past->dim[3]);
    return true;
}

static void ms_attention_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, INPUT);
    const ot_dtype dtype = ot_infer_dtype(c, INPUT);
    ot__ms_sizes s = {.batch = x->dim[0],
                      .heads = ot_attr_int(ot_infer_node(c), "num_heads"),
                      .queries = x->dim[1],
                      .keys = x->dim[1]};
    int64_t sizes[3];

    if (!check_unsupported(c) || !check_projection(c, sizes) ||
        !ot__ms_check_heads(c, WEIGHTS, sizes[0], &s.head) ||
        !ot__ms_check_heads(c, WEIGHTS, sizes[2], &s.value) || !read_past_state(c, &s) ||
        !ot__ms_check_mask(c, MASK, &s, true) || !ot__ms_check_bias(c, ATTENTION_BIAS, &s))
        return;
    ot_infer_set(c, Y, dtype, &OT_SHAPE(s.batch, s.queries, sizes[2]));
    ot_infer_set(c, PRESENT, dtype, &OT_SHAPE(2, s.batch, s.heads, s.keys, s.head));
}

// ---- what it is composed of ----

// Queries, keys and values, heads side by side.
static void emit_projections(ot_grad *g, ot_value **parts)
{
    ot_value *weights = ot_grad_x(g, WEIGHTS), *thirds[3], *in[2];
    int64_t sizes[3];
    ot_node *split;

    in[0] = ot_emit2(g, "MatMul", ot_grad_x(g, INPUT), weights);
    if (ot_grad_x(g, BIAS) != NULL)
        in[0] = ot_emit2(g, "Add", in[0], ot_grad_x(g, BIAS));
    read_hidden_sizes(ot_grad_node(g), ot_value_shape(weights), sizes);
    if (ot_dim_is_number(sizes[0])) {
        in[1] = ot_emit_constant_i64(g, sizes, 3);
    } else {
        thirds[0] = ot__emit_extents(g, weights, 1, 2);
        thirds[0] = ot_emit2(g, "Div", thirds[0], ot_emit_constant_i64(g, &(int64_t){3}, 1));
        thirds[1] = thirds[2] = thirds[0];
        in[1] = ot__emit_concat(g, thirds, 3, 0);
    }
    split = in[0] == NULL || in[1] == NULL ? NULL : ot_emit(g, "Split", "axis = -1", in, 2, 3);
    for (int i = 0; i < 3; i++)
        parts[i] = ot_emit_output(g, split, i);
}

// past_key and past_value; NULLs without a past.
static void emit_past(ot_grad *g, ot_value **past)
{
    for (int i = 0; i < 2; i++)
        past[i] = ot_grad_x(g, PAST) == NULL ? NULL : ot__emit_at(g, ot_grad_x(g, PAST), i);
}

static ot_value *emit_joined(ot_grad *g, ot_value *past, ot_value *x)
{
    ot_value *const parts[] = {past, x};

    return past == NULL ? x : ot__emit_concat(g, parts, 2, 2);
}

static void ms_attention_compose(ot_grad *g)
{
    const int64_t heads = ot_attr_int(ot_grad_node(g), "num_heads");
    ot__ms_attention a = {.mask = ot_grad_x(g, MASK),
                          .has_starts = true,
                          .bias = ot_grad_x(g, ATTENTION_BIAS),
                          .is_causal = ot_attr_int(ot_grad_node(g), "unidirectional") != 0};
    ot_value *parts[3], *past[2], *present[2], *y, *both = NULL;
    ot__ms_scores scores;

    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_x(g, i) != NULL && !ot_value_has_shape(ot_grad_x(g, i)))
            return;
    emit_projections(g, parts);
    emit_past(g, past);
    a.past_key = past[0];
    a.q = ot__emit_heads(g, parts[0], heads);
    a.k = emit_joined(g, past[0], ot__emit_heads(g, parts[1], heads));
    a.v = emit_joined(g, past[1], ot__emit_heads(g, parts[2], heads));
    if (a.q == NULL || a.k == NULL || a.v == NULL)
        return;
    y = ot__ms_attention_emit(g, &a, &scores);
    if (ot_expand_wants(g, PRESENT)) {
        present[0] = ot__emit_axes(g, a.k, 0, 1);
        present[1] = ot__emit_axes(g, a.v, 0, 1);
        both = ot__emit_concat(g, present, 2, 0);
    }
    ot_expand_set(g, Y, y);
    ot_expand_set(g, PRESENT, both);
}

// ---- record ----

static const ot_port ms_attention_in[] = {
    {"input", "T", 0},
    {"weights", "T", OT_PORT_WEIGHT},
    {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {"mask_index", "M", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"past", "T", OT_PORT_OPTIONAL},
    {"attention_bias", "T", OT_PORT_OPTIONAL},
    {"past_sequence_length", "M", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port ms_attention_out[] = {
    {"output", "T", 0}, {"present", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_attr_spec ms_attention_attrs[] = {
    OT__MS_ATTENTION_ATTRS,
    OT__INT_ATTR("do_rotary", 0),
    OT__INT_ATTR("past_present_share_buffer", 0),
    {.name = "qkv_hidden_sizes", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("rotary_embedding_dim", 0),
    {0},
};
const ot_op_def ot__op_ms_attention[] = {
    {.domain = OT__MS,
     .name = "Attention",
     .since = 1,
     .inputs = ms_attention_in,
     .outputs = ms_attention_out,
     .attrs = ms_attention_attrs,
     .types = "T: f32 f64; M: i32",
     .infer = ms_attention_infer,
     .train = ms_attention_compose},
    {0},
};
