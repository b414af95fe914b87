// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of ONNX Runtime: queries share heads of keys and values, which may be rotated
// by their positions; a query reads the keys up to its own, the last local_window_size of them.
// Keys and values from before are all read: buffers that are shared with what is present, and that
// are filled in part, are not supported. Padding on the right needs no mask then, so that seqlens_k
// and total_sequence_length say nothing more.
#include <string.h>

#include "ops/attention/ms_attention.h"

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    ATTENTION_BIAS,
    FIRST_UNSUPPORTED,
};
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };
enum { SCORES_NONE, SCORES_BEFORE, SCORES_AFTER }; // attribute qk_output

// ---- inference ----

static bool check_group_attrs(ot_infer *c)
{
    static const char *const zero[] = {"smooth_softmax", "sliding_window_cache"};
    static const char *const none[] = {"k_quant_type", "v_quant_type"};
    static const char *const inputs[] = {"head_sink", "k_scale", "v_scale", "q_norm_weight",
                                         "k_norm_weight"};
    const ot_node *node = ot_infer_node(c);
    const int64_t window = ot_attr_int(node, "local_window_size");

    for (size_t i = 0; i < OT_COUNT(zero); i++)
        if (ot_attr_int(node, zero[i]) > 0) // -1 stands for 0
            return ot__refuse(c, "%s is not supported", zero[i]);
    for (size_t i = 0; i < OT_COUNT(none); i++)
        if (strcmp(ot_attr_string(node, none[i]), "NONE") != 0)
            return ot__refuse(c, "%s is '%.40s', only NONE is supported", none[i],
                              ot_attr_string(node, none[i]));
    for (size_t i = 0; i < OT_COUNT(inputs); i++)
        if (!ot__ms_refuse_given(c, FIRST_UNSUPPORTED + (int)i, inputs[i]))
            return false;
    if (window != -1 && (window < 1 || ot_attr_int(node, "causal") == 0))
        return ot__refuse(c,
                          "local_window_size is %" PRId64 ", expected -1, or at least 1 of "
                          "causal attention",
                          window);
    if (ot_attr_int(node, "qk_output") < 0 || ot_attr_int(node, "qk_output") > SCORES_AFTER)
        return ot__refuse(c, "qk_output is %" PRId64 ", expected 0 to %d",
                          ot_attr_int(node, "qk_output"), SCORES_AFTER);
    if (ot_infer_wants(c, SCORES) && ot_attr_int(node, "qk_output") == SCORES_NONE)
        return ot__refuse(c, "output_qk is asked for, qk_output is 0");
    return true;
}

// The heads of queries and of keys; false with the failure.
static bool read_group_heads(ot_infer *c, int64_t *heads, int64_t *kv_heads)
{
    *heads = ot_attr_int(ot_infer_node(c), "num_heads");
    *kv_heads = ot_attr_int(ot_infer_node(c), "kv_num_heads");
    if (*heads >= 1 && *heads <= INT32_MAX && *kv_heads >= 1 && *heads % *kv_heads == 0)
        return true;
    return ot__refuse(c, "num_heads is %" PRId64 ", expected a multiple of kv_num_heads, %" PRId64,
                      *heads, *kv_heads);
}

static bool read_group_operands(ot_infer *c, int64_t kv_heads, ot__ms_sizes *s)
{
    const ot_shape *q = ot_infer_shape(c, QUERY);
    const bool is_packed = !ot_infer_has(c, KEY);
    const int64_t parts = s->heads + (is_packed ? 2 * kv_heads : 0);

    if (q->ndim != 3)
        return ot__refuse(c, "query has %d axes, expected 3", q->ndim);
    if (ot_infer_has(c, KEY) != ot_infer_has(c, VALUE))
        return ot__refuse(c, "key and value are given together or not at all");
    if (ot_dim_is_number(q->dim[2]) && q->dim[2] % parts != 0)
        return ot__refuse(
            c, "query has size %" PRId64 " along axis 2, expected a multiple of %" PRId64 " heads",
            q->dim[2], parts);
    s->batch = q->dim[0];
    s->queries = s->keys = q->dim[1];
    s->head = ot_dim_is_number(q->dim[2]) ? q->dim[2] / parts : ot_dim_unknown();
    for (int i = KEY; !is_packed && i <= VALUE; i++) {
        const ot_shape *x = ot_infer_shape(c, i);

        if (x->ndim != 3)
            return ot__refuse(c, "input %d has %d axes, expected 3", i, x->ndim);
        if (!ot__ms_check_size(c, i, 0, x->dim[0], s->batch) ||
            !ot__ms_check_size(c, i, 1, x->dim[1], s->queries) ||
            !ot__ms_check_size(c, i, 2, x->dim[2], ot_infer_mul(c, kv_heads, s->head)))
            return false;
    }
    return true;
}

static bool read_group_past(ot_infer *c, int64_t kv_heads, ot__ms_sizes *s)
{
    if (ot_infer_has(c, PAST_KEY) != ot_infer_has(c, PAST_VALUE))
        return ot__refuse(c, "past_key and past_value are given together or not at all");
    for (int i = PAST_KEY; ot_infer_has(c, PAST_KEY) && i <= PAST_VALUE; i++) {
        const ot_shape *past = ot_infer_shape(c, i);

        if (past->ndim != 4)
            return ot__refuse(c, "input %d has %d axes, expected 4", i, past->ndim);
        if (!ot__ms_check_size(c, i, 0, past->dim[0], s->batch) ||
            !ot__ms_check_size(c, i, 1, past->dim[1], kv_heads) ||
            !ot__ms_check_size(c, i, 2, past->dim[2], ot_infer_shape(c, PAST_KEY)->dim[2]) ||
            !ot__ms_check_size(c, i, 3, past->dim[3], s->head))
            return false;
    }
    if (ot_infer_has(c, PAST_KEY))
        s->keys = ot_infer_add(c, s->keys, ot_infer_shape(c, PAST_KEY)->dim[2]);
    return true;
}

static bool check_group_rotary(ot_infer *c, const ot__ms_sizes *s)
{
    const ot_shape *cosines = ot_infer_shape(c, COS), *positions = ot_infer_shape(c, POSITIONS);

    if (ot_attr_int(ot_infer_node(c), "do_rotary") == 0)
        return true;
    if (!ot_infer_has(c, COS) || !ot_infer_has(c, SIN))
        return ot__refuse(c, "do_rotary is 1, expected cos_cache and sin_cache");
    if (cosines->ndim != 2)
        return ot__refuse(c, "cos_cache has %d axes, expected 2", cosines->ndim);
    if (ot_dim_is_number(s->head) && ot_dim_is_number(cosines->dim[1]) &&
        cosines->dim[1] > s->head / 2)
        return ot__refuse(c, "cos_cache has size %" PRId64 " along axis 1, a head %" PRId64,
                          cosines->dim[1], s->head);
    if (!ot__infer_matches(c, COS, SIN))
        return false;
    if (!ot_infer_has(c, POSITIONS))
        return true;
    if (positions->ndim != 2)
        return ot__refuse(c, "position_ids has %d axes, expected 2", positions->ndim);
    return ot__ms_check_size(c, POSITIONS, 0, positions->dim[0], s->batch) &&
           ot__ms_check_size(c, POSITIONS, 1, positions->dim[1], s->queries);
}

static void group_query_infer(ot_infer *c)
{
    const ot_dtype dtype = ot_infer_dtype(c, QUERY);
    ot__ms_sizes s = {0};
    int64_t kv_heads;

    if (!check_group_attrs(c) || !read_group_heads(c, &s.heads, &kv_heads) ||
        !read_group_operands(c, kv_heads, &s) || !read_group_past(c, kv_heads, &s) ||
        !check_group_rotary(c, &s) || !ot__ms_check_bias(c, ATTENTION_BIAS, &s))
        return;
    ot_infer_set(c, Y, dtype, &OT_SHAPE(s.batch, s.queries, ot_infer_mul(c, s.heads, s.head)));
    ot_infer_set(c, PRESENT_KEY, dtype, &OT_SHAPE(s.batch, kv_heads, s.keys, s.head));
    ot_infer_set(c, PRESENT_VALUE, dtype, &OT_SHAPE(s.batch, kv_heads, s.keys, s.head));
    ot_infer_set(c, SCORES, dtype, &OT_SHAPE(s.batch, s.heads, s.queries, s.keys));
}

// ---- what it is composed of ----

// Queries, keys and values, with heads side by side.
static void emit_group_parts(ot_grad *g, int64_t heads, int64_t kv_heads, ot_value **parts)
{
    const int64_t counts[] = {heads, kv_heads, kv_heads}, sum = heads + 2 * kv_heads;
    ot_value *query = ot_grad_x(g, QUERY), *sizes[3], *size, *in[2];
    ot_node *split;

    parts[0] = query;
    parts[1] = ot_grad_x(g, KEY);
    parts[2] = ot_grad_x(g, VALUE);
    if (parts[1] != NULL)
        return;
    size = ot__emit_extents(g, query, 2, 3);
    size = ot_emit2(g, "Div", size, ot_emit_constant_i64(g, &sum, 1));
    for (int i = 0; i < 3; i++)
        sizes[i] = ot__emit_times(g, size, (double)counts[i]);
    in[0] = query;
    in[1] = ot__emit_concat(g, sizes, 3, 0);
    split = in[1] == NULL ? NULL : ot_emit(g, "Split", "axis = -1", in, 2, 3);
    for (int i = 0; i < 3; i++)
        parts[i] = ot_emit_output(g, split, i);
}

// Where each query stands: as it is given, or behind the past, (1, queries).
static ot_value *emit_group_positions(ot_grad *g, ot_value *q)
{
    ot_value *positions = ot_grad_x(g, POSITIONS), *past = ot_grad_x(g, PAST_KEY);

    if (positions != NULL)
        return positions;
    positions = ot__emit_count_up(g, ot__emit_size(g, q, 2));
    if (past != NULL)
        positions = ot_emit2(g, "Add", positions, ot__emit_size(g, past, 2));
    return ot__emit_axes(g, positions, 0, 1);
}

static void emit_group_rotated(ot_grad *g, ot_value **parts)
{
    const bool is_interleaved = ot_attr_int(ot_grad_node(g), "rotary_interleaved") != 0;
    ot_value *positions, *cosines, *sines;

    if (ot_attr_int(ot_grad_node(g), "do_rotary") == 0 || parts[0] == NULL)
        return;
    positions = emit_group_positions(g, parts[0]);
    cosines = ot_emit2(g, "Gather", ot_grad_x(g, COS), positions);
    sines = ot_emit2(g, "Gather", ot_grad_x(g, SIN), positions);
    for (int i = 0; i < 2; i++)
        parts[i] = ot__emit_rotated_heads(g, parts[i], cosines, sines, is_interleaved);
}

static void group_query_compose(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    const int64_t heads = ot_attr_int(node, "num_heads"),
                  kv_heads = ot_attr_int(node, "kv_num_heads");
    ot__ms_attention a = {.bias = ot_grad_x(g, ATTENTION_BIAS),
                          .past_key = ot_grad_x(g, PAST_KEY),
                          .is_causal = ot_attr_int(node, "causal") != 0,
                          .window = ot_attr_int(node, "local_window_size"),
                          .softcap = (double)ot_attr_float(node, "softcap")};
    ot_value *parts[3], *present[2], *y;
    ot__ms_scores scores;

    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_x(g, i) != NULL && !ot_value_has_shape(ot_grad_x(g, i)))
            return;
    emit_group_parts(g, heads, kv_heads, parts);
    for (int i = 0; i < 3; i++)
        parts[i] = ot__emit_heads(g, parts[i], i == 0 ? heads : kv_heads);
    emit_group_rotated(g, parts);
    for (int i = 0; i < 2; i++) {
        ot_value *const both[] = {ot_grad_x(g, PAST_KEY + i), parts[1 + i]};

        present[i] = both[0] == NULL ? both[1] : ot__emit_concat(g, both, 2, 2);
    }
    a.q = parts[0];
    a.k = ot__emit_repeated_heads(g, present[0], kv_heads, heads);
    a.v = ot__emit_repeated_heads(g, present[1], kv_heads, heads);
    if (a.q == NULL || a.k == NULL || a.v == NULL)
        return;
    y = ot__ms_attention_emit(g, &a, &scores);
    ot_expand_set(g, Y, y);
    ot_expand_set(g, PRESENT_KEY, present[0]);
    ot_expand_set(g, PRESENT_VALUE, present[1]);
    ot_expand_set(g, SCORES,
                  ot_attr_int(node, "qk_output") == SCORES_AFTER ? scores.probabilities
                                                                 : scores.masked);
}

// ---- record ----

static const ot_port group_query_in[] = {
    {"query", "T", 0},
    {"key", "T", OT_PORT_OPTIONAL},
    {"value", "T", OT_PORT_OPTIONAL},
    {"past_key", "T", OT_PORT_OPTIONAL},
    {"past_value", "T", OT_PORT_OPTIONAL},
    {"seqlens_k", "M", OT_PORT_NO_GRAD},
    {"total_sequence_length", "M", OT_PORT_NO_GRAD},
    {"cos_cache", "T", OT_PORT_OPTIONAL},
    {"sin_cache", "T", OT_PORT_OPTIONAL},
    {"position_ids", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"attention_bias", "T", OT_PORT_OPTIONAL},
    {"head_sink", "T", OT_PORT_OPTIONAL},
    {"k_scale", "T", OT_PORT_OPTIONAL},
    {"v_scale", "T", OT_PORT_OPTIONAL},
    {"q_norm_weight", "T", OT_PORT_OPTIONAL},
    {"k_norm_weight", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port group_query_out[] = {
    {"output", "T", 0},
    {"present_key", "T", OT_PORT_OPTIONAL},
    {"present_value", "T", OT_PORT_OPTIONAL},
    {"output_qk", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec group_query_attrs[] = {
    OT__FLAG_ATTR("causal", 1),
    OT__FLAG_ATTR("do_rotary", 0),
    OT__STRING_ATTR("k_quant_type", "NONE"),
    OT__INT_ATTR("kv_cache_bit_width", 0),
    {.name = "kv_num_heads", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    OT__INT_ATTR("local_window_size", -1),
    {.name = "num_heads", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    OT__FLOAT_ATTR("qk_norm_epsilon", 1e-6F),
    OT__INT_ATTR("qk_output", 0),
    OT__FLAG_ATTR("rotary_interleaved", 0),
    OT__FLOAT_ATTR("scale", 0.0F),
    OT__INT_ATTR("sliding_window_cache", 0),
    OT__INT_ATTR("smooth_softmax", -1),
    OT__FLOAT_ATTR("softcap", 0.0F),
    OT__STRING_ATTR("v_quant_type", "NONE"),
    {0},
};
const ot_op_def ot__op_group_query_attention[] = {
    {.domain = OT__MS,
     .name = "GroupQueryAttention",
     .since = 1,
     .inputs = group_query_in,
     .outputs = group_query_out,
     .attrs = group_query_attrs,
     .types = "T: f32 f64; M: i32",
     .infer = group_query_infer,
     .train = group_query_compose},
    {0},
};
