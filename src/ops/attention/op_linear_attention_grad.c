// SPDX-License-Identifier: Apache-2.0
// Gradients of LinearAttention: back through the positions. States are not kept by the forward run
// but made again, a segment of positions at a time.
#include "ops/attention/linear_attention.h"

enum { DY, X, DPRESENT = X + OT__LIN_INPUTS };

static bool fits_output(ot_infer *c, int input, const ot_shape *expected, const char *name)
{
    return !ot_infer_has(c, input) || ot__shape_may_equal(ot_infer_shape(c, input), expected) ||
           ot__refuse(c, "%s does not have the shape of that output", name);
}

static void linear_grad_infer(ot_infer *c)
{
    const ot_dtype dtype = ot_infer_dtype(c, X + OT__LIN_Q);
    const int past = X + OT__LIN_PAST;
    ot__linear_attention a;
    int64_t hidden;
    ot_shape state;

    if (!ot__linear_attention_infer(c, X, &a))
        return;
    hidden = ot_infer_mul(c, a.q_heads, a.value_size);
    state = OT_SHAPE(a.batch, a.kv_heads, a.key_size, a.value_size);
    if (!ot__infer_extent(c, 2, a.q_heads, a.value_size, hidden) ||
        !fits_output(c, DY, &OT_SHAPE(a.batch, a.length, hidden), "dOutput") ||
        !fits_output(c, DPRESENT, &state, "dPresent_state"))
        return;
    for (int i = 0; i < OT__LIN_BETA; i++)
        ot_infer_set(c, i,
                     i == OT__LIN_PAST && ot_infer_has(c, past) ? ot_infer_dtype(c, past) : dtype,
                     i == OT__LIN_PAST ? &state : ot_infer_shape(c, X + i));
    ot_infer_set(c, OT__LIN_BETA, dtype, &OT_SHAPE(a.batch, a.length, a.kv_heads));
}

// ---- kernels ----

typedef struct linear_grad_state {
    ot__linear_attention a;
    const ot__linear_attentions *kernel;
    int64_t n_parts;
} linear_grad_state;

// As many bytes as `head_grad_bytes` gives, which may be too many to count.
static double estimate_bytes(const ot__linear_attention *a)
{
    const double blocks = (double)ot__linear_attention_blocks(a), segment = (double)a->segment;
    const double states = ((double)a->length / segment + 2) * blocks + segment + 1;
    const double rows = (double)a->key_size, group = (double)a->q_heads / (double)a->kv_heads;

    return sizeof(double) *
           (states * rows * OT__LINEAR_COLUMNS + segment * (rows * (group + 3) + 1));
}

static ot_status prepare_linear_grad(ot_prep *p, const ot__linear_attentions *kernel)
{
    linear_grad_state *s = ot_prep_state(p, sizeof(*s));
    double bytes;

    OT_TRY(ot__made(s));
    s->kernel = kernel;
    ot__linear_attention_read(p, X, &s->a);
    bytes = estimate_bytes(&s->a);
    if (bytes < OT__LINEAR_MEMORY)
        bytes = (double)kernel->head_grad_bytes(&s->a);
    return ot__linear_attention_scratch(p, (double)s->a.batch * (double)s->a.kv_heads, bytes,
                                        &s->n_parts);
}

static ot_status linear_grad_prepare_f32(ot_prep *p)
{
    return prepare_linear_grad(p, &ot__ref_linear_attentions_f32);
}

static ot_status linear_grad_prepare_f64(ot_prep *p)
{
    return prepare_linear_grad(p, &ot__ref_linear_attentions_f64);
}

static ot_status linear_grad_prepare_simd(ot_prep *p)
{
    return prepare_linear_grad(p, ot__linear_attentions_best());
}

static ot_status linear_grad_run(const ot_run *r)
{
    const linear_grad_state *s = r->state;
    const ot__linear_attention_data data = {.query = r->in[X + OT__LIN_Q]->data,
                                            .key = r->in[X + OT__LIN_K]->data,
                                            .value = r->in[X + OT__LIN_V]->data,
                                            .past = ot__run_in(r, X + OT__LIN_PAST),
                                            .decay = ot__run_in(r, X + OT__LIN_DECAY),
                                            .beta = ot__run_in(r, X + OT__LIN_BETA),
                                            .dy = ot__run_in(r, DY),
                                            .dpresent = ot__run_in(r, DPRESENT),
                                            .dquery = ot__run_out(r, OT__LIN_Q),
                                            .dkey = ot__run_out(r, OT__LIN_K),
                                            .dvalue = ot__run_out(r, OT__LIN_V),
                                            .dpast = ot__run_out(r, OT__LIN_PAST),
                                            .ddecay = ot__run_out(r, OT__LIN_DECAY),
                                            .dbeta = ot__run_out(r, OT__LIN_BETA)};

    ot__linear_attention_grad_run(s->kernel, &s->a, &data, s->n_parts, r->scratch);
    return OT_OK;
}

// ---- record ----

static const ot_port linear_grad_in[] = {
    {"dOutput", "T", OT_PORT_OPTIONAL},
    {"query", "T", 0},
    {"key", "T", 0},
    {"value", "T", 0},
    {"past_state", "S", OT_PORT_OPTIONAL},
    {"decay", "T", OT_PORT_OPTIONAL},
    {"beta", "T", OT_PORT_OPTIONAL},
    {"dPresent_state", "S", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port linear_grad_out[] = {
    {"dQuery", "T", OT_PORT_OPTIONAL},
    {"dKey", "T", OT_PORT_OPTIONAL},
    {"dValue", "T", OT_PORT_OPTIONAL},
    {"dPast_state", "S", OT_PORT_OPTIONAL},
    {"dDecay", "T", OT_PORT_OPTIONAL},
    {"dBeta", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_kernel linear_grad_kernels[] = {
    OT__SIMD_KERNEL("T: f32; S: f32", NULL, linear_grad_prepare_simd, linear_grad_run),
    OT__REF_KERNEL("T: f32; S: f32", linear_grad_prepare_f32, linear_grad_run),
    OT__REF_KERNEL("T: f64; S: f64", linear_grad_prepare_f64, linear_grad_run),
    {0},
};
const ot_op_def ot__op_linear_attention_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "LinearAttentionGrad",
     .since = 1,
     .inputs = linear_grad_in,
     .outputs = linear_grad_out,
     .attrs = ot__linear_attention_attrs,
     .types = "T: f32 f64; S: f32 f64",
     .infer = linear_grad_infer,
     .kernels = linear_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
