// SPDX-License-Identifier: Apache-2.0
// Attention: Y = softmax(scale * Q * K^T + mask) * V, for heads that are an axis of their own (four
// axes) or lie side by side (three).
#include "ops/attention/onnx_attention.h"

typedef struct attention_sizes {
    int64_t batch, q_heads, kv_heads, queries, keys, head, value; // keys: with past ones
} attention_sizes;

int64_t ot__attention_heads(const ot_node *node, const ot_shape *x, const char *attr)
{
    return x->ndim == 4 ? x->dim[1] : ot_attr_int(node, attr);
}

// ---- checks ----

static bool check_equal(ot_infer *c, int input, int axis, int64_t found, int64_t expected)
{
    if (!ot__dim_differs(found, expected))
        return true;
    return ot__refuse(c, "input %d has size %" PRId64 " along axis %d, expected %" PRId64, input,
                      found, axis, expected);
}

static bool check_attention_attrs(ot_infer *c, const ot_node *node)
{
    const int64_t mode = ot_attr_int(node, "qk_matmul_output_mode");
    const int64_t precision = ot_attr_int(node, "softmax_precision");
    static const char *const windows[] = {"left_window_size", "right_window_size"};

    if (mode < 0 || mode >= OT__ATT_MODES)
        return ot__refuse(c, "qk_matmul_output_mode is %" PRId64 ", expected 0 to %d", mode,
                          OT__ATT_MODES - 1);
    if (ot_attr_given(node, "softmax_precision") && precision != OT_F32 && precision != OT_F64 &&
        precision != OT_F16 && precision != OT_BF16)
        return ot__refuse(c, "softmax_precision is %" PRId64 ", expected %d, %d, %d or %d",
                          precision, OT_F32, OT_F16, OT_F64, OT_BF16);
    for (size_t i = 0; i < OT_COUNT(windows) && node->op->since >= OT__ATT_HAS_WINDOW_SINCE; i++)
        if (ot_attr_int(node, windows[i]) < -1)
            return ot__refuse(c, "%s is %" PRId64 ", expected at least -1", windows[i],
                              ot_attr_int(node, windows[i]));
    return true;
}

// The elements of a head of input i, of three axes.
static bool read_hidden(ot_infer *c, int i, int64_t heads, const char *attr, int64_t *size)
{
    const int64_t hidden = ot_infer_shape(c, i)->dim[2];

    *size = ot_dim_unknown();
    if (heads < 1)
        return ot__refuse(c, "%s is %" PRId64 ", expected at least 1 for inputs of 3 axes", attr,
                          heads);
    if (!ot_dim_is_number(hidden))
        return true;
    if (hidden % heads != 0)
        return ot__refuse(
            c, "input %d has size %" PRId64 " along axis 2, which %s, %" PRId64 ", does not divide",
            i, hidden, attr, heads);
    *size = hidden / heads;
    return true;
}

static bool read_heads(ot_infer *c, attention_sizes *s)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *q = ot_infer_shape(c, OT__ATT_Q), *k = ot_infer_shape(c, OT__ATT_K);
    const ot_shape *v = ot_infer_shape(c, OT__ATT_V);
    int64_t of_key;

    if ((q->ndim != 3 && q->ndim != 4) || k->ndim != q->ndim || v->ndim != q->ndim)
        return ot__refuse(c, "Q, K and V have %d, %d and %d axes, expected all 3 or all 4", q->ndim,
                          k->ndim, v->ndim);
    if (q->ndim == 4 && node->op->since >= OT__ATT_HAS_WINDOW_SINCE &&
        (ot_attr_given(node, "q_num_heads") || ot_attr_given(node, "kv_num_heads")))
        return ot__refuse(c, "q_num_heads and kv_num_heads are for inputs of 3 axes, these have 4");
    *s = (attention_sizes){.batch = q->dim[0],
                           .q_heads = ot__attention_heads(node, q, "q_num_heads"),
                           .kv_heads = ot__attention_heads(node, k, "kv_num_heads"),
                           .queries = q->dim[q->ndim - 2],
                           .keys = k->dim[k->ndim - 2]};
    if (q->ndim == 3) {
        if (!read_hidden(c, OT__ATT_Q, s->q_heads, "q_num_heads", &s->head) ||
            !read_hidden(c, OT__ATT_K, s->kv_heads, "kv_num_heads", &of_key) ||
            !read_hidden(c, OT__ATT_V, s->kv_heads, "kv_num_heads", &s->value))
            return false;
    } else {
        s->head = q->dim[3];
        s->value = v->dim[3];
        of_key = k->dim[3];
        if (!check_equal(c, OT__ATT_V, 1, v->dim[1], s->kv_heads))
            return false;
    }
    if (ot__dim_differs(of_key, s->head))
        return ot__refuse(c, "heads of Q have size %" PRId64 ", those of K %" PRId64, s->head,
                          of_key);
    if (ot_dim_is_number(s->q_heads) && ot_dim_is_number(s->kv_heads) &&
        (s->kv_heads < 1 || s->q_heads % s->kv_heads != 0))
        return ot__refuse(c,
                          "%" PRId64 " heads of Q are not a multiple of the %" PRId64 " of K and V",
                          s->q_heads, s->kv_heads);
    return check_equal(c, OT__ATT_K, 0, k->dim[0], s->batch) &&
           check_equal(c, OT__ATT_V, 0, v->dim[0], s->batch) &&
           check_equal(c, OT__ATT_V, v->ndim - 2, v->dim[v->ndim - 2], s->keys);
}

static bool check_past(ot_infer *c, int i, const attention_sizes *s, int64_t size)
{
    const ot_shape *past = ot_infer_shape(c, i);

    if (past->ndim != 4)
        return ot__refuse(c, "input %d has %d axes, expected 4", i, past->ndim);
    return check_equal(c, i, 0, past->dim[0], s->batch) &&
           check_equal(c, i, 1, past->dim[1], s->kv_heads) &&
           check_equal(c, i, 3, past->dim[3], size);
}

// Keys and values from before, which count then.
static bool read_past(ot_infer *c, attention_sizes *s)
{
    const bool has_key = ot_infer_has(c, OT__ATT_PAST_KEY);
    const bool has_lengths = ot_infer_has(c, OT__ATT_LENGTHS);
    const int64_t past = has_key ? ot_infer_shape(c, OT__ATT_PAST_KEY)->dim[2] : 0;

    if (has_key != ot_infer_has(c, OT__ATT_PAST_VALUE))
        return ot__refuse(c, "past_key and past_value are given together or not at all");
    if (has_lengths && (has_key || ot_infer_wants(c, OT__ATT_PRESENT_KEY) ||
                        ot_infer_wants(c, OT__ATT_PRESENT_VALUE)))
        return ot__refuse(c, "nonpad_kv_seqlen is not given together with past or present keys "
                             "and values");
    if (has_lengths && ot_infer_shape(c, OT__ATT_LENGTHS)->ndim != 1)
        return ot__refuse(c, "nonpad_kv_seqlen has %d axes, expected 1",
                          ot_infer_shape(c, OT__ATT_LENGTHS)->ndim);
    if (has_lengths)
        return check_equal(c, OT__ATT_LENGTHS, 0, ot_infer_shape(c, OT__ATT_LENGTHS)->dim[0],
                           s->batch);
    if (!has_key)
        return true;
    if (!check_past(c, OT__ATT_PAST_KEY, s, s->head) ||
        !check_past(c, OT__ATT_PAST_VALUE, s, s->value) ||
        !check_equal(c, OT__ATT_PAST_VALUE, 2, ot_infer_shape(c, OT__ATT_PAST_VALUE)->dim[2], past))
        return false;
    s->keys = ot_infer_add(c, s->keys, past);
    return true;
}

static bool check_mask(ot_infer *c, const attention_sizes *s)
{
    const ot_shape *mask = ot_infer_shape(c, OT__ATT_MASK);
    const int64_t expected[] = {s->batch, s->q_heads, s->queries, s->keys};
    const bool is_padded = ot_infer_node(c)->op->since >= OT__ATT_PADS_MASK_SINCE;

    if (mask->ndim > 4)
        return ot__refuse(c, "attn_mask has %d axes, expected at most 4", mask->ndim);
    for (int k = 0; k < mask->ndim; k++) {
        const int64_t found = mask->dim[k], wanted = expected[4 - mask->ndim + k];

        if (is_padded && k == mask->ndim - 1) {
            if (ot_dim_is_number(found) && ot_dim_is_number(wanted) && found > wanted)
                return ot__refuse(c,
                                  "attn_mask has size %" PRId64 " along axis %d, expected at "
                                  "most %" PRId64,
                                  found, k, wanted);
        } else if (found != 1 && !check_equal(c, OT__ATT_MASK, k, found, wanted)) {
            return false;
        }
    }
    return true;
}

static void attention_infer(ot_infer *c)
{
    const ot_dtype dtype = ot_infer_dtype(c, OT__ATT_Q);
    attention_sizes s;

    if (!check_attention_attrs(c, ot_infer_node(c)) || !read_heads(c, &s) || !read_past(c, &s) ||
        (ot_infer_has(c, OT__ATT_MASK) && !check_mask(c, &s)))
        return;
    if (ot_infer_shape(c, OT__ATT_Q)->ndim == 4)
        ot_infer_set(c, OT__ATT_Y, dtype, &OT_SHAPE(s.batch, s.q_heads, s.queries, s.value));
    else
        ot_infer_set(c, OT__ATT_Y, dtype,
                     &OT_SHAPE(s.batch, s.queries, ot_infer_mul(c, s.q_heads, s.value)));
    ot_infer_set(c, OT__ATT_PRESENT_KEY, dtype, &OT_SHAPE(s.batch, s.kv_heads, s.keys, s.head));
    ot_infer_set(c, OT__ATT_PRESENT_VALUE, ot_infer_dtype(c, OT__ATT_V),
                 &OT_SHAPE(s.batch, s.kv_heads, s.keys, s.value));
    ot_infer_set(c, OT__ATT_SCORES, dtype, &OT_SHAPE(s.batch, s.q_heads, s.queries, s.keys));
}

// ---- records ----

static const ot_port attention_in[] = {
    {"Q", "T1", 0},
    {"K", "T1", 0},
    {"V", "T2", 0},
    {"attn_mask", "U", OT_PORT_OPTIONAL},
    {"past_key", "T1", OT_PORT_OPTIONAL},
    {"past_value", "T2", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port attention_in_24[] = {
    {"Q", "T1", 0},
    {"K", "T1", 0},
    {"V", "T2", 0},
    {"attn_mask", "U", OT_PORT_OPTIONAL},
    {"past_key", "T1", OT_PORT_OPTIONAL},
    {"past_value", "T2", OT_PORT_OPTIONAL},
    {"nonpad_kv_seqlen", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port attention_out[] = {
    {"Y", "T1", 0},
    {"present_key", "T1", OT_PORT_OPTIONAL},
    {"present_value", "T2", OT_PORT_OPTIONAL},
    {"qk_matmul_output", "T1", OT_PORT_OPTIONAL},
    {0},
};
// Those of opset 23 first behind what opset 25 has before them.
static const ot_attr_spec attention_attrs[] = {
    OT__INT_ATTR("left_window_size", -1),
    OT__INT_ATTR("right_window_size", -1),
    OT__FLAG_ATTR("is_causal", 0),
    OT__INT_ATTR("kv_num_heads", 0),
    OT__INT_ATTR("q_num_heads", 0),
    OT__INT_ATTR("qk_matmul_output_mode", 0),
    {.name = "scale", .kind = OT_ATTRIBUTE_FLOAT},
    OT__FLOAT_ATTR("softcap", 0.0F),
    {.name = "softmax_precision", .kind = OT_ATTRIBUTE_INT},
    {0},
};
#define ATTENTION(since_, inputs_, attrs_)                                                         \
    {                                                                                              \
        .name = "Attention", .since = since_, .inputs = inputs_, .outputs = attention_out,         \
        .attrs = attrs_,                                                                           \
        .types = "T1: f32 f64; T2: f32 f64; "                                                      \
                 "U: f32 f64 bool i8 i16 i32 i64 u8 u16 u32 u64",                                  \
        .infer = attention_infer, .train = ot__attention_compose                                   \
    }
const ot_op_def ot__op_attention[] = {
    ATTENTION(23, attention_in, attention_attrs + 2),
    ATTENTION(24, attention_in_24, attention_attrs + 2),
    ATTENTION(25, attention_in_24, attention_attrs),
    {0},
};
