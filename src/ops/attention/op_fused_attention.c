// SPDX-License-Identifier: Apache-2.0
// Y = softmax(scale * Q * K^T + mask) * V of many heads, which are read where they lie in Q, K and
// V and written where Y wants them: views give offsets and strides. Output 1 is the logarithm of
// the sum of the exponentials of each row of scores, from which the gradient makes the
// probabilities again. With `dropout`, probabilities are dropped as Dropout would, whose output is
// called `dropout_name`. Made by a pass.
#include "ops/attention/attention.h"

#include <stddef.h>
#include <string.h>

enum { Q, K, V, MASK }; // inputs
enum { Y, LSE };

typedef struct fused_attention {
    ot__attention a;
    bool has_gaps; // in Y, which are 0
    ot__attention_plan plan;
    const ot__attentions *kernel; // vector code only
    ot__attention_draws draws;
} fused_attention;

static void fused_attention_infer(ot_infer *c)
{
    ot__attention a;
    ot_shape y;

    if (!ot__attention_infer(c, Q, MASK, &a, &y))
        return;
    ot_infer_set(c, Y, ot_infer_dtype(c, Q), &y);
    ot_infer_set(c, LSE, ot_infer_dtype(c, Q), &OT_SHAPE(a.batch, a.heads, a.queries));
}

// ---- kernels ----

static ot_status fused_attention_prepare(ot_prep *p)
{
    const ot_arg *y = ot_prep_out(p, Y);
    fused_attention *f = ot__attention_state(p, sizeof *f, offsetof(fused_attention, draws));

    OT_TRY(ot__made(f));
    OT_TRY(ot__attention_prepare(p, Q, MASK, y, &f->a));
    f->has_gaps =
        ot__attention_view_count(
            &f->a, &(ot__attention_view){&f->a.y, f->a.queries, f->a.value_size}) != y->count;
    return OT_OK;
}

static ot_status fused_attention_prepare_ref(ot_prep *p)
{
    OT_TRY(fused_attention_prepare(p));
    ot_prep_scratch(p, (size_t)ot__ref_attention_row(&((fused_attention *)p->state)->a) *
                           sizeof(double));
    return OT_OK;
}

static ot__attention_data forward_data(const ot_run *r)
{
    const fused_attention *f = r->state;

    if (f->has_gaps)
        memset(r->out[Y]->data, 0, (size_t)r->out[Y]->count * ot_dtype_size(r->out[Y]->dtype));
    return (ot__attention_data){.q = r->in[Q]->data,
                                .k = r->in[K]->data,
                                .v = r->in[V]->data,
                                .mask = ot__run_in(r, MASK),
                                .y = r->out[Y]->data,
                                .lse = ot__run_out(r, LSE),
                                .dropout = ot__attention_dropout_of(&f->draws, r->step)};
}

#define TEMPLATE "ops/attention/fused_attention.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_status fused_attention_prepare_simd(ot_prep *p)
{
    fused_attention *f;

    OT_TRY(fused_attention_prepare(p));
    f = p->state;
    f->kernel = ot__attentions_best();
    ot__attention_plan_make(&f->plan, f->kernel, &f->a, ot_prep_threads(p), false);
    ot_prep_scratch(p, f->plan.scratch_bytes * (size_t)ot_prep_threads(p));
    return OT_OK;
}

static ot_status fused_attention_run_simd(const ot_run *r)
{
    const fused_attention *f = r->state;
    const ot__attention_data data = forward_data(r);

    ot__attention_run(&f->plan, f->kernel, &data, r->scratch, r->n_threads);
    return OT_OK;
}

// ---- gradient ----

// The first of Q, K and V that is the same value as number i.
static int first_same(ot_grad *g, int i)
{
    int same = Q;

    while (ot_grad_x(g, same) != ot_grad_x(g, i))
        same++;
    return same;
}

// Gradients of Q, K and V that are one value go to one output.
static void fused_attention_grad(ot_grad *g)
{
    enum { N_GRAD_INPUTS = 7 };
    ot_value *y = ot_grad_y(g, Y), *lse = ot_grad_y(g, LSE);
    ot_value *in[N_GRAD_INPUTS] = {
        ot_grad_dy(g, Y),  ot_grad_x(g, Q), ot_grad_x(g, K), ot_grad_x(g, V), y, lse,
        ot_grad_x(g, MASK)};
    int64_t to[] = {-1, -1, -1};
    int n_outputs = 0;
    ot_node *node;

    for (int i = Q; i <= V; i++)
        if (ot_grad_wants(g, i))
            to[i] = first_same(g, i) < i ? to[first_same(g, i)] : n_outputs++;
    if (in[0] == NULL || n_outputs == 0)
        return;
    node = ot_emit(g, "ai.onnxtrain.FusedAttentionGrad", NULL, in,
                   in[N_GRAD_INPUTS - 1] == NULL ? N_GRAD_INPUTS - 1 : N_GRAD_INPUTS, n_outputs);
    ot_emit_forward_attrs(g, node);
    ot_emit_ints(g, node, "gradients", to, V + 1);
    for (int i = Q; i <= V; i++)
        if (to[i] >= 0 && first_same(g, i) == i)
            ot_grad_set_dx(g, i, ot_emit_output(g, node, (int)to[i]));
}

// ---- record ----

static const ot_port fused_attention_in[] = {{"Q", "T", 0},
                                             {"K", "T", 0},
                                             {"V", "T", 0},
                                             {"mask", "M", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                             {0}};
static const ot_port fused_attention_out[] = {
    {"Y", "T", 0}, {"lse", "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32}, {0}};
static const ot_attr_spec fused_attention_attrs[] = {OT__ATTENTION_ATTRS, {0}};
static const ot_kernel fused_attention_kernels[] = {
    OT__SIMD_KERNEL("T: f32; M: bool f32", ot__attention_has_rows, fused_attention_prepare_simd,
                    fused_attention_run_simd),
    OT__REF_KERNEL("T: f32; M: bool f32", fused_attention_prepare_ref, fused_attention_run_f32),
    OT__REF_KERNEL("T: f64; M: bool f64", fused_attention_prepare_ref, fused_attention_run_f64),
    {0},
};
const ot_op_def ot__op_fused_attention[] = {
    {.domain = "ai.onnxtrain",
     .name = "FusedAttention",
     .since = 1,
     .inputs = fused_attention_in,
     .outputs = fused_attention_out,
     .attrs = fused_attention_attrs,
     .types = "T: f32 f64; M: bool f32 f64",
     .infer = fused_attention_infer,
     .kernels = fused_attention_kernels,
     .grad = fused_attention_grad,
     .flags = OT_OP_INTERNAL},
    {0},
};
