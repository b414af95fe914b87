// SPDX-License-Identifier: Apache-2.0
// Gradients of FusedAttention. Those of Q, K and V go to the outputs that `gradients` names, of the
// shape of what they are the gradients of, and lie there as the views say: one output where all
// three lie in one tensor. Gaps are 0.
#include "ops/attention/attention.h"

#include <stddef.h>
#include <string.h>

enum { DY, Q, K, V, Y, LSE, MASK }; // inputs
enum { N_OPERANDS = 3, NOT_WANTED = -1 };

typedef struct fused_attention_grad {
    ot__attention a;
    int64_t output[N_OPERANDS]; // of dQ, dK and dV
    bool has_gaps[N_OPERANDS];  // per output
    ot__attention_plan plan;
    const ot__attentions *kernel; // vector code only
    ot__attention_draws draws;
} fused_attention_grad;

// ---- which gradient goes where ----

static bool read_outputs(const ot_node *node, int64_t *output, char *why)
{
    int n;
    const int64_t *given = ot_attr_ints(node, "gradients", &n);

    if (n != N_OPERANDS) {
        (void)snprintf(why, OT__ATTENTION_TEXT, "gradients has %d numbers, expected %d", n,
                       N_OPERANDS);
        return false;
    }
    for (int i = 0; i < N_OPERANDS; i++) {
        output[i] = given[i];
        if (given[i] < NOT_WANTED || given[i] >= node->n_outputs) {
            (void)snprintf(why, OT__ATTENTION_TEXT, "gradient %d goes to output %" PRId64 " of %d",
                           i, given[i], node->n_outputs);
            return false;
        }
    }
    return true;
}

static int views_of(const ot__attention *a, const int64_t *output, int i, ot__attention_view *views)
{
    const ot__attention_view all[N_OPERANDS] = {{&a->q, a->queries, a->head_size},
                                                {&a->k, a->keys, a->head_size},
                                                {&a->v, a->keys, a->value_size}};
    int n = 0;

    for (int k = 0; k < N_OPERANDS; k++)
        if (output[k] == i)
            views[n++] = all[k];
    return n;
}

static bool check_gradients_apart(const ot_node *node, const ot__attention *a,
                                  const int64_t *output, char *why)
{
    ot__attention_view views[N_OPERANDS];

    for (int i = 0; i < node->n_outputs; i++) {
        const int n = views_of(a, output, i, views);

        if (n == 0 || !ot__attention_views_are_apart(a, views, n)) {
            (void)snprintf(
                why, OT__ATTENTION_TEXT,
                n == 0 ? "no gradient goes to output %d" : "gradients overlap in output %d", i);
            return false;
        }
    }
    return true;
}

static void fused_attention_grad_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    int64_t output[N_OPERANDS];
    char why[OT__ATTENTION_TEXT];
    ot__attention a;
    ot_shape y;

    if (!ot__attention_infer(c, Q, MASK, &a, &y))
        return;
    if (!ot__shape_may_equal(ot_infer_shape(c, DY), &y) ||
        !ot__shape_may_equal(ot_infer_shape(c, Y), &y) ||
        !ot__shape_may_equal(ot_infer_shape(c, LSE), &OT_SHAPE(a.batch, a.heads, a.queries)))
        ot_infer_fail(c, "dY, Y and lse must have the shapes of the forward node's outputs");
    if (!read_outputs(node, output, why) || !check_gradients_apart(node, &a, output, why)) {
        ot_infer_fail(c, "%s", why);
        return;
    }
    for (int i = N_OPERANDS - 1; i >= 0; i--)
        for (int k = i; output[i] != NOT_WANTED && k >= 0; k--)
            if (output[k] == output[i] && !ot__infer_matches(c, Q + k, Q + i))
                return;
    for (int i = 0; i < N_OPERANDS; i++)
        if (output[i] != NOT_WANTED)
            ot_infer_set(c, (int)output[i], ot_infer_dtype(c, Q + i), ot_infer_shape(c, Q + i));
}

// ---- kernels ----

static ot_status fused_attention_grad_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    fused_attention_grad *f =
        ot__attention_state(p, sizeof *f, offsetof(fused_attention_grad, draws));
    char why[OT__ATTENTION_TEXT];

    OT_TRY(ot__made(f));
    OT_TRY(ot__attention_prepare(p, Q, MASK, ot_prep_in(p, DY), &f->a));
    if (!read_outputs(node, f->output, why) || !check_gradients_apart(node, &f->a, f->output, why))
        return ot_prep_fail(p, OT_ERR_INVALID, "%s", why);
    for (int i = 0; i < node->n_outputs; i++) {
        ot__attention_view views[N_OPERANDS];
        const int n = views_of(&f->a, f->output, i, views);
        int64_t written = 0;

        for (int k = 0; k < n; k++)
            written += ot__attention_view_count(&f->a, &views[k]);
        f->has_gaps[i] = ot_prep_out(p, i) != NULL &&
                         (written != ot_prep_out(p, i)->count || ot__attention_is_empty(&f->a));
    }
    return OT_OK;
}

static ot_status fused_attention_grad_prepare_ref(ot_prep *p)
{
    OT_TRY(fused_attention_grad_prepare(p));
    ot_prep_scratch(p, (size_t)ot__ref_attention_row(&((fused_attention_grad *)p->state)->a) *
                           sizeof(double));
    return OT_OK;
}

static void *gradient_of(const ot_run *r, int operand)
{
    const fused_attention_grad *f = r->state;

    return f->output[operand] == NOT_WANTED ? NULL : ot__run_out(r, (int)f->output[operand]);
}

static ot__attention_data gradient_data(const ot_run *r)
{
    const fused_attention_grad *f = r->state;

    for (int i = 0; i < r->n_out; i++)
        if (f->has_gaps[i])
            memset(r->out[i]->data, 0, (size_t)r->out[i]->count * ot_dtype_size(r->out[i]->dtype));
    return (ot__attention_data){.q = r->in[Q]->data,
                                .k = r->in[K]->data,
                                .v = r->in[V]->data,
                                .mask = ot__run_in(r, MASK),
                                .y = r->in[Y]->data,
                                .lse = r->in[LSE]->data,
                                .dy = r->in[DY]->data,
                                .dq = gradient_of(r, 0),
                                .dk = gradient_of(r, 1),
                                .dv = gradient_of(r, 2),
                                .dropout = ot__attention_dropout_of(&f->draws, r->step)};
}

#define TEMPLATE "ops/attention/fused_attention_grad.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_status fused_attention_grad_prepare_simd(ot_prep *p)
{
    fused_attention_grad *f;

    OT_TRY(fused_attention_grad_prepare(p));
    f = p->state;
    f->kernel = ot__attentions_best();
    ot__attention_plan_make(&f->plan, f->kernel, &f->a, ot_prep_threads(p), true);
    ot_prep_scratch(p, f->plan.scratch_bytes * (size_t)ot_prep_threads(p));
    return OT_OK;
}

static ot_status fused_attention_grad_run_simd(const ot_run *r)
{
    const fused_attention_grad *f = r->state;
    const ot__attention_data data = gradient_data(r);

    ot__attention_grad_run(&f->plan, f->kernel, &data, r->scratch, r->n_threads);
    return OT_OK;
}

// ---- record ----

static const ot_port fused_attention_grad_in[] = {{"dY", "T", 0},
                                                  {"Q", "T", 0},
                                                  {"K", "T", 0},
                                                  {"V", "T", 0},
                                                  {"Y", "T", 0},
                                                  {"lse", "T", OT_PORT_F32},
                                                  {"mask", "M", OT_PORT_OPTIONAL},
                                                  {0}};
static const ot_port fused_attention_grad_out[] = {{"dX0", "T", OT_PORT_OPTIONAL},
                                                   {"dX1", "T", OT_PORT_OPTIONAL},
                                                   {"dX2", "T", OT_PORT_OPTIONAL},
                                                   {0}};
static const ot_attr_spec fused_attention_grad_attrs[] = {
    OT__ATTENTION_ATTRS,
    {.name = "gradients", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {0},
};
static const ot_kernel fused_attention_grad_kernels[] = {
    OT__SIMD_KERNEL("T: f32; M: bool f32", ot__attention_has_rows,
                    fused_attention_grad_prepare_simd, fused_attention_grad_run_simd),
    OT__REF_KERNEL("T: f32; M: bool f32", fused_attention_grad_prepare_ref,
                   fused_attention_grad_run_f32),
    OT__REF_KERNEL("T: f64; M: bool f64", fused_attention_grad_prepare_ref,
                   fused_attention_grad_run_f64),
    {0},
};
const ot_op_def ot__op_fused_attention_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "FusedAttentionGrad",
     .since = 1,
     .inputs = fused_attention_grad_in,
     .outputs = fused_attention_grad_out,
     .attrs = fused_attention_grad_attrs,
     .types = "T: f32 f64; M: bool f32 f64",
     .infer = fused_attention_grad_infer,
     .kernels = fused_attention_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
