// SPDX-License-Identifier: Apache-2.0
// LinearAttention: a state for each head of keys and values, which goes from position to position,
// and which queries read.
#include <math.h>
#include <string.h>

#include "ops/attention/linear_attention.h"

// ---- rules ----

static const struct {
    const char *name;
    bool decays, corrects;
} rules[] = {
    {"linear", false, false},
    {"gated", true, false},
    {"delta", false, true},
    {"gated_delta", true, true},
};

static int find_update_rule(const ot_node *node)
{
    const char *given = ot_attr_string(node, "update_rule");

    for (int i = 0; i < (int)OT_COUNT(rules); i++)
        if (strcmp(given, rules[i].name) == 0)
            return i;
    return -1;
}

static bool check_rule_input(ot_infer *c, int input, const char *name, bool is_wanted, int rule)
{
    return ot_infer_has(c, input) == is_wanted ||
           ot__refuse(c,
                      is_wanted ? "%s is missing, update_rule %s needs it"
                                : "%s is given, update_rule %s has none",
                      name, rules[rule].name);
}

static bool check_update_rule(ot_infer *c, int first)
{
    const int rule = find_update_rule(ot_infer_node(c));

    if (rule < 0)
        return ot__refuse(c, "update_rule is '%.20s', expected linear, gated, delta or gated_delta",
                          ot_attr_string(ot_infer_node(c), "update_rule"));
    return check_rule_input(c, first + OT__LIN_DECAY, "decay", rules[rule].decays, rule) &&
           check_rule_input(c, first + OT__LIN_BETA, "beta", rules[rule].corrects, rule);
}

// ---- sizes ----

static bool check_linear_size(ot_infer *c, int input, int axis, int64_t expected)
{
    const int64_t found = ot_infer_shape(c, input)->dim[axis];

    return !ot__dim_differs(found, expected) ||
           ot__refuse(c, "input %d has size %" PRId64 " along axis %d, expected %" PRId64, input,
                      found, axis, expected);
}

// Of (batch, length, ...), which each input but the state is.
static bool check_positions(ot_infer *c, int input, const ot__linear_attention *a)
{
    const ot_shape *x = ot_infer_shape(c, input);

    if (x->ndim != 3)
        return ot__refuse(c, "input %d has %d axes, expected 3", input, x->ndim);
    return check_linear_size(c, input, 0, a->batch) && check_linear_size(c, input, 1, a->length);
}

static bool read_head_elements(ot_infer *c, int input, int64_t heads, const char *attr,
                               int64_t *size)
{
    const int64_t hidden = ot_infer_shape(c, input)->dim[2];

    *size = ot_dim_unknown();
    if (!ot_dim_is_number(hidden))
        return true;
    *size = hidden / heads;
    return hidden % heads == 0 ||
           ot__refuse(c,
                      "input %d has size %" PRId64 " along axis 2, which %s, %" PRId64
                      ", does not divide",
                      input, hidden, attr, heads);
}

static bool read_linear_heads(ot_infer *c, ot__linear_attention *a)
{
    const ot_node *node = ot_infer_node(c);

    a->q_heads = ot_attr_int(node, "q_num_heads");
    a->kv_heads = ot_attr_int(node, "kv_num_heads");
    return a->q_heads % a->kv_heads == 0 ||
           ot__refuse(c,
                      "q_num_heads is %" PRId64 ", expected a multiple of kv_num_heads, %" PRId64,
                      a->q_heads, a->kv_heads);
}

static bool check_decay(ot_infer *c, int input, ot__linear_attention *a)
{
    const int64_t found = ot_infer_shape(c, input)->dim[2];
    const int64_t each = ot_infer_mul(c, a->kv_heads, a->key_size);

    if (ot_dim_is_number(found) && found != a->kv_heads && ot__dim_differs(found, each))
        return ot__refuse(c,
                          "decay has size %" PRId64 " along axis 2, expected %" PRId64
                          ", one for each head, or %" PRId64 ", one for each element of a key",
                          found, a->kv_heads, each);
    return check_positions(c, input, a);
}

static bool check_beta(ot_infer *c, int input, ot__linear_attention *a)
{
    const int64_t found = ot_infer_shape(c, input)->dim[2];

    if (ot_dim_is_number(found) && found != a->kv_heads && found != 1)
        return ot__refuse(c, "beta has size %" PRId64 " along axis 2, expected %" PRId64 " or 1",
                          found, a->kv_heads);
    return check_positions(c, input, a);
}

// It also tells sizes.
static bool check_past_state(ot_infer *c, int input, ot__linear_attention *a)
{
    const ot_shape *past = ot_infer_shape(c, input);

    if (past->ndim != 4)
        return ot__refuse(c, "past_state has %d axes, expected 4", past->ndim);
    if (!ot_dim_is_number(a->key_size))
        a->key_size = past->dim[2];
    if (!ot_dim_is_number(a->value_size))
        a->value_size = past->dim[3];
    return check_linear_size(c, input, 0, a->batch) &&
           check_linear_size(c, input, 1, a->kv_heads) &&
           check_linear_size(c, input, 2, a->key_size) &&
           check_linear_size(c, input, 3, a->value_size);
}

static bool check_ndims(ot_infer *c, int first)
{
    static const int three[] = {OT__LIN_Q, OT__LIN_K, OT__LIN_V, OT__LIN_DECAY, OT__LIN_BETA};

    for (size_t i = 0; i < OT_COUNT(three); i++) {
        const int ndim = ot_infer_shape(c, first + three[i])->ndim;

        if (ot_infer_has(c, first + three[i]) && ndim != 3)
            return ot__refuse(c, "input %d has %d axes, expected 3", first + three[i], ndim);
    }
    return true;
}

bool ot__linear_attention_infer(ot_infer *c, int first, ot__linear_attention *a)
{
    const ot_shape *q = ot_infer_shape(c, first + OT__LIN_Q);
    const int k = first + OT__LIN_K, v = first + OT__LIN_V;
    int64_t key_size;

    *a = (ot__linear_attention){0};
    if (!check_update_rule(c, first) || !read_linear_heads(c, a) || !check_ndims(c, first))
        return false;
    a->batch = q->dim[0];
    a->length = q->dim[1];
    if (!read_head_elements(c, first + OT__LIN_Q, a->q_heads, "q_num_heads", &a->key_size) ||
        !read_head_elements(c, k, a->kv_heads, "kv_num_heads", &key_size) ||
        !read_head_elements(c, v, a->kv_heads, "kv_num_heads", &a->value_size))
        return false;
    if (ot__dim_differs(a->key_size, key_size))
        return ot__refuse(c, "heads of query have size %" PRId64 ", those of key %" PRId64,
                          a->key_size, key_size);
    if (!ot_dim_is_number(a->key_size))
        a->key_size = key_size;
    return check_positions(c, k, a) && check_positions(c, v, a) &&
           (!ot_infer_has(c, first + OT__LIN_DECAY) || check_decay(c, first + OT__LIN_DECAY, a)) &&
           (!ot_infer_has(c, first + OT__LIN_BETA) || check_beta(c, first + OT__LIN_BETA, a)) &&
           (!ot_infer_has(c, first + OT__LIN_PAST) || check_past_state(c, first + OT__LIN_PAST, a));
}

static void linear_infer(ot_infer *c)
{
    const ot_dtype dtype = ot_infer_dtype(c, OT__LIN_Q);
    const bool has_past = ot_infer_has(c, OT__LIN_PAST);
    ot__linear_attention a;
    int64_t hidden;

    if (!ot__linear_attention_infer(c, OT__LIN_Q, &a))
        return;
    hidden = ot_infer_mul(c, a.q_heads, a.value_size);
    if (!ot__infer_extent(c, 2, a.q_heads, a.value_size, hidden))
        return;
    ot_infer_set(c, OT__LIN_Y, dtype, &OT_SHAPE(a.batch, a.length, hidden));
    ot_infer_set(c, OT__LIN_PRESENT, has_past ? ot_infer_dtype(c, OT__LIN_PAST) : dtype,
                 &OT_SHAPE(a.batch, a.kv_heads, a.key_size, a.value_size));
}

// ---- kernels ----

void ot__linear_attention_read(const ot_prep *p, int first, ot__linear_attention *a)
{
    const ot_node *node = ot_prep_node(p);
    const ot_shape *q = &ot_prep_in(p, first + OT__LIN_Q)->shape;
    const ot_arg *decay = ot_prep_in(p, first + OT__LIN_DECAY);
    const ot_arg *beta = ot_prep_in(p, first + OT__LIN_BETA);

    *a = (ot__linear_attention){.batch = q->dim[0],
                                .length = q->dim[1],
                                .q_heads = ot_attr_int(node, "q_num_heads"),
                                .kv_heads = ot_attr_int(node, "kv_num_heads"),
                                .scale = (double)ot_attr_float(node, "scale")};
    a->key_size = q->dim[2] / a->q_heads;
    a->value_size = ot_prep_in(p, first + OT__LIN_V)->shape.dim[2] / a->kv_heads;
    if (a->scale == 0)
        a->scale = 1 / sqrt((double)OT_MAX(a->key_size, 1));
    if (decay != NULL)
        a->decay_size = decay->shape.dim[2] == a->kv_heads ? 1 : a->key_size;
    if (beta != NULL)
        a->beta_heads = beta->shape.dim[2];
    ot__linear_attention_choose_segment(a);
}

ot_status ot__linear_attention_scratch(ot_prep *p, double n_tasks, double bytes, int64_t *n_parts)
{
    const double n_threads = (double)ot_prep_threads(p);

    if (n_tasks > OT__LINEAR_MEMORY)
        return ot_prep_fail(p, OT_ERR_NO_MEMORY, "%g heads have a state", n_tasks);
    *n_parts = OT_MAX((int64_t)OT_MIN(n_tasks, n_threads), 1);
    if (bytes * (double)*n_parts > OT__LINEAR_MEMORY)
        return ot_prep_fail(p, OT_ERR_NO_MEMORY, "states take %g bytes of scratch", bytes);
    ot_prep_scratch(p, (size_t)bytes * (size_t)*n_parts);
    return OT_OK;
}

typedef struct linear_state {
    ot__linear_attention a;
    const ot__linear_attentions *kernel;
    int64_t n_parts;
} linear_state;

static ot_status prepare_linear(ot_prep *p, const ot__linear_attentions *kernel)
{
    linear_state *s = ot_prep_state(p, sizeof(*s));
    double n_tasks, bytes;

    OT_TRY(ot__made(s));
    s->kernel = kernel;
    ot__linear_attention_read(p, OT__LIN_Q, &s->a);
    n_tasks = (double)s->a.batch * (double)s->a.kv_heads *
              (double)OT_MAX(ot__linear_attention_blocks(&s->a), 1);
    bytes = (double)s->a.key_size * (OT__LINEAR_COLUMNS + 1) * sizeof(double); // or less
    if (bytes < OT__LINEAR_MEMORY)
        bytes = (double)kernel->block_bytes(&s->a);
    return ot__linear_attention_scratch(p, n_tasks, bytes, &s->n_parts);
}

static ot_status linear_prepare_f32(ot_prep *p)
{
    return prepare_linear(p, &ot__ref_linear_attentions_f32);
}

static ot_status linear_prepare_f64(ot_prep *p)
{
    return prepare_linear(p, &ot__ref_linear_attentions_f64);
}

static ot_status linear_prepare_simd(ot_prep *p)
{
    return prepare_linear(p, ot__linear_attentions_best());
}

static ot_status linear_run(const ot_run *r)
{
    const linear_state *s = r->state;
    const ot__linear_attention_data data = {.query = r->in[OT__LIN_Q]->data,
                                            .key = r->in[OT__LIN_K]->data,
                                            .value = r->in[OT__LIN_V]->data,
                                            .past = ot__run_in(r, OT__LIN_PAST),
                                            .decay = ot__run_in(r, OT__LIN_DECAY),
                                            .beta = ot__run_in(r, OT__LIN_BETA),
                                            .y = r->out[OT__LIN_Y]->data,
                                            .present = ot__run_out(r, OT__LIN_PRESENT)};

    ot__linear_attention_run(s->kernel, &s->a, &data, s->n_parts, r->scratch);
    return OT_OK;
}

// ---- gradient ----

static void linear_grad(ot_grad *g)
{
    ot_value *in[OT__LIN_INPUTS + 2] = {ot_grad_dy(g, OT__LIN_Y)}, *dbeta;
    ot_node *node;

    for (int i = 0; i < OT__LIN_INPUTS; i++)
        in[i + 1] = ot_grad_x(g, i);
    in[OT__LIN_INPUTS + 1] = ot_grad_dy(g, OT__LIN_PRESENT);
    node = ot_emit(g, "ai.onnxtrain.LinearAttentionGrad", NULL, in, OT__LIN_INPUTS + 2,
                   OT__LIN_INPUTS);
    ot_emit_forward_attrs(g, node);
    for (int i = 0; i < OT__LIN_INPUTS; i++)
        if (!ot_grad_wants(g, i))
            ot_emit_omit_output(g, node, i);
    for (int i = 0; i < OT__LIN_BETA; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
    if (!ot_grad_wants(g, OT__LIN_BETA))
        return;
    dbeta = ot_emit_output(g, node, OT__LIN_BETA);
    ot_grad_set_dx(g, OT__LIN_BETA, ot_emit_sum_to(g, dbeta, ot_grad_x(g, OT__LIN_BETA)));
}

// ---- record ----

const ot_attr_spec ot__linear_attention_attrs[] = {
    OT__INT_ATTR("chunk_size", 64), // says nothing about the results
    {.name = "kv_num_heads",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_REQUIRED,
     .low = 1,
     .high = OT__LINEAR_HEADS + 1},
    {.name = "q_num_heads",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_REQUIRED,
     .low = 1,
     .high = OT__LINEAR_HEADS + 1},
    OT__FLOAT_ATTR("scale", 0.0F),
    OT__STRING_ATTR("update_rule", "gated_delta"),
    {0},
};
static const ot_port linear_in[] = {
    {"query", "T", 0},
    {"key", "T", 0},
    {"value", "T", 0},
    {"past_state", "S", OT_PORT_OPTIONAL},
    {"decay", "T", OT_PORT_OPTIONAL},
    {"beta", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port linear_out[] = {{"output", "T", 0}, {"present_state", "S", 0}, {0}};
static const ot_kernel linear_kernels[] = {
    OT__SIMD_KERNEL("T: f32; S: f32", NULL, linear_prepare_simd, linear_run),
    OT__REF_KERNEL("T: f32; S: f32", linear_prepare_f32, linear_run),
    OT__REF_KERNEL("T: f64; S: f64", linear_prepare_f64, linear_run),
    {0},
};
const ot_op_def ot__op_linear_attention[] = {
    {.name = "LinearAttention",
     .since = 27,
     .inputs = linear_in,
     .outputs = linear_out,
     .attrs = ot__linear_attention_attrs,
     .types = "T: f32 f64; S: f32 f64",
     .infer = linear_infer,
     .kernels = linear_kernels,
     .grad = linear_grad},
    {0},
};
