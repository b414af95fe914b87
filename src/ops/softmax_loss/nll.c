// SPDX-License-Identifier: Apache-2.0
// The losses over class labels and their gradients. Loss = -log_prob at the
// labels, weighted and reduced; log_prob is the input
// (NegativeLogLikelihoodLoss) or log(softmax(scores))
// (SoftmaxCrossEntropyLoss).
#include "ops/softmax_loss/nll.h"

#include <string.h>

// ---- shapes ----

static bool loss_reduction_of(const ot_node *node, ot__loss_reduction *out)
{
    static const char *const names[] = {"none", "sum", "mean"};
    const char *text = ot_attr_string(node, "reduction");

    for (int i = 0; i < (int)OT_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (ot__loss_reduction)i;
            return true;
        }
    return false;
}

static bool same_or_symbolic(int64_t a, int64_t b)
{
    return a == b || !ot_dim_is_number(a) || !ot_dim_is_number(b);
}

static bool loss_check_inputs(ot_infer *c, int scores, int labels, int weight,
                              ot__loss_reduction *reduction)
{
    const ot_shape *x = ot_infer_shape(c, scores), *t = ot_infer_shape(c, labels);
    bool fits = x->ndim >= 2 && t->ndim == x->ndim - 1;

    if (!loss_reduction_of(ot_infer_node(c), reduction))
        return ot__refuse(c, "reduction is '%s', expected none, sum or mean",
                          ot_attr_string(ot_infer_node(c), "reduction"));
    for (int i = 0; fits && i < t->ndim; i++)
        fits = same_or_symbolic(t->dim[i], x->dim[i == 0 ? 0 : i + 1]);
    if (!fits)
        return ot__refuse(c,
                          "labels must have the shape of the scores without axis 1, "
                          "got %d and %d axes",
                          t->ndim, x->ndim);
    if (ot_infer_has(c, weight) &&
        (ot_infer_shape(c, weight)->ndim != 1 ||
         !same_or_symbolic(ot_infer_shape(c, weight)->dim[0], x->dim[1])))
        return ot__refuse(c, "weight must have one element a class");
    return true;
}

static void loss_infer(ot_infer *c)
{
    ot__loss_reduction reduction;

    if (!ot__infer_one_element(c, IGNORE) ||
        !loss_check_inputs(c, SCORES, LABELS, WEIGHT, &reduction))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, SCORES),
                 reduction == OT__LOSS_NONE ? ot_infer_shape(c, LABELS) : &OT_SHAPE_SCALAR);
    ot_infer_set(c, 1, ot_infer_dtype(c, SCORES), ot_infer_shape(c, SCORES));
}

static void loss_grad_infer(ot_infer *c)
{
    ot__loss_reduction reduction;

    if (ot_infer_has(c, G_BIAS))
        ot_infer_fail(c, "a bias is not supported");
    if (ot__infer_one_element(c, G_IGNORE) &&
        loss_check_inputs(c, G_SCORES, G_LABELS, G_WEIGHT, &reduction) &&
        (reduction == OT__LOSS_NONE ? ot__infer_matches(c, G_DY, G_LABELS)
                                    : ot__infer_one_element(c, G_DY)))
        ot_infer_set(c, 0, ot_infer_dtype(c, G_SCORES), ot_infer_shape(c, G_SCORES));
}

// ---- kernels ----

static ot_status loss_prepare_as(ot_prep *p, int scores, int labels)
{
    const ot_node *node = ot_prep_node(p);
    const ot_shape *x = &ot_prep_in(p, scores)->shape;
    ot__nll *nll = ot_prep_state(p, sizeof(*nll));

    OT_TRY(ot__made(nll));
    *nll = (ot__nll){.n = x->dim[0], .classes = x->dim[1], .inner = 1};
    for (int i = 2; i < x->ndim; i++)
        nll->inner *= x->dim[i];
    (void)loss_reduction_of(node,
                            &nll->reduction); // inference has seen that it is one
    nll->has_ignore = ot_attr_given(node, "ignore_index");
    nll->ignore = nll->has_ignore ? ot_attr_int(node, "ignore_index") : 0;
    nll->label_size = ot_dtype_size(ot_prep_in(p, labels)->dtype);
    return OT_OK;
}

ot_status ot__loss_prepare(ot_prep *p)
{
    return loss_prepare_as(p, SCORES, LABELS);
}

static ot_status sce_prepare(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, SCORES);

    if (ot_prep_output_count(p) < 2 || !ot_prep_out(p, 1))
        ot_prep_scratch(p, (size_t)x->count * ot_dtype_size(x->dtype));
    return ot__loss_prepare(p);
}

ot_status ot__loss_grad_prepare(ot_prep *p)
{
    return loss_prepare_as(p, G_SCORES, G_LABELS);
}

// The state, with the ignored label of input port `ignore` if that is given;
// checks the labels.
ot_status ot__loss_begin(const ot_run *r, int labels, int ignore, ot__nll *p)
{
    const void *given = ot__run_in(r, ignore);
    int64_t at;

    *p = *(const ot__nll *)r->state;
    if (given) {
        p->has_ignore = true;
        p->ignore = *(const int64_t *)given;
    }
    at = ot__ref_nll_check(r->in[labels]->data, p);
    if (at < 0)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "label %" PRId64 " at position %" PRId64 " is outside 0..%" PRId64,
                     ot__ref_nll_label(r->in[labels]->data, p, at), at, p->classes - 1);
}

void *ot__sce_log_prob(const ot_run *r)
{
    return r->n_out > 1 && r->out[1] ? r->out[1]->data : r->scratch;
}

#define TEMPLATE "ops/softmax_loss/nll.tmpl.h"
#include "kernels/by_float.tmpl.h"

// Of the lists for softmax.
enum { FIRST_REFERENCE = 2 };
static const ot_kernel nll_kernels[] = {OT__REF_KERNELS(ot__loss_prepare, nll_run), {0}};
static const ot_kernel nll_grad_kernels[] = {
    OT__SIMD_KERNEL("T: f32", ot__loss_grad_can_columns, ot__loss_grad_prepare,
                    ot__nll_grad_run_columns),
    OT__REF_KERNELS(ot__loss_grad_prepare, nll_grad_run),
    {0},
};
static const ot_kernel sce_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(ot__sce_can_rows, ot__sce_prepare_rows, ot__sce_run_rows),
    OT__SIMD_KERNEL("T: f32", ot__sce_can_columns, sce_prepare, ot__sce_run_columns),
    OT__REF_KERNELS(sce_prepare, sce_run),
    {0},
};
static const ot_kernel sce_grad_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(ot__sce_grad_can_rows, ot__sce_grad_prepare_rows, ot__sce_grad_run_rows),
    OT__SIMD_KERNEL("T: f32", ot__loss_grad_can_columns, ot__loss_grad_prepare,
                    ot__sce_grad_run_columns),
    OT__REF_KERNELS(ot__loss_grad_prepare, sce_grad_run),
    {0},
};

// ---- gradients ----

// dInput = -one-hot(label) * weight * share of dLoss.
static void nll_grad(ot_grad *g)
{
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0), ot_grad_x(g, 1), ot_grad_x(g, 2)};
    ot_node *node =
        ot_emit(g, "ai.onnxtrain.NegativeLogLikelihoodLossGrad", NULL, in, in[3] ? 4 : 3, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

// Through the loss: (softmax - one-hot) * weight * dLoss. Through log_prob,
// when it is used: LogSoftmax's gradient.
static void sce_emit_grad(ot_grad *g, const char *op)
{
    ot_value *log_prob = ot_grad_y(g, 1), *d_loss = ot_grad_dy(g, 0);
    ot_value *d_log_prob = ot_grad_dy(g, 1), *dx = NULL;

    if (d_loss) {
        ot_value *in[5] = {d_loss, log_prob};
        int n_in = 2;
        ot_node *node;

        for (int i = 1; i < ot_grad_input_count(g); i++) {
            in[i + 1] = ot_grad_x(g, i);
            n_in = in[i + 1] ? i + 2 : n_in;
        }
        node = ot_emit(g, op, NULL, in, n_in, 1);
        ot_emit_forward_attrs(g, node);
        dx = ot_emit_output(g, node, 0);
    }
    if (d_log_prob) {
        ot_value *in[] = {d_log_prob, log_prob};
        ot_node *node = ot_emit(g, "com.microsoft.LogSoftmaxGrad_13", "axis = 1", in, 2, 1);
        ot_value *second = ot_emit_output(g, node, 0);
        dx = dx ? ot_emit2(g, "Add", dx, second) : second;
    }
    ot_grad_set_dx(g, 0, dx);
}

static void sce_grad(ot_grad *g)
{
    sce_emit_grad(g, "com.microsoft.SoftmaxCrossEntropyLossGrad");
}

static void sce_internal_grad(ot_grad *g)
{
    sce_emit_grad(g, "com.microsoft.SoftmaxCrossEntropyLossInternalGrad");
}

// ---- records ----

#define LOSS_IN(scores, labels, weight)                                                            \
    {scores, "T", OT_PORT_F32}, {labels, "Tind", OT_PORT_NO_GRAD},                                 \
    {                                                                                              \
        weight, "T", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32                              \
    }
#define LOSS_GRAD_IN(scores, labels)                                                               \
    {"dY", "T", OT_PORT_F32}, {scores, "T", OT_PORT_F32}, {labels, "Tind", 0},                     \
    {                                                                                              \
        "weight", "T", OT_PORT_OPTIONAL | OT_PORT_F32                                              \
    }
#define LOSS_ATTRS                                                                                 \
    OT__STRING_ATTR("reduction", "mean"),                                                          \
    {                                                                                              \
        .name = "ignore_index", .kind = OT_ATTRIBUTE_INT                                           \
    }
static const ot_port nll_in[] = {LOSS_IN("input", "target", "weight"), {0}};
static const ot_port nll_out[] = {{"loss", "T", OT_PORT_F32}, {0}};
static const ot_port nll_grad_in[] = {LOSS_GRAD_IN("input", "target"), {0}};
static const ot_port nll_grad_out[] = {{"dX", "T", OT_PORT_F32}, {0}};
static const ot_port sce_in[] = {LOSS_IN("scores", "labels", "weights"), {0}};
static const ot_port sce_internal_in[] = {
    LOSS_IN("scores", "labels", "weights"),
    {"ignore_index", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port sce_out[] = {
    {"output", "T", OT_PORT_F32}, {"log_prob", "T", OT_PORT_OPTIONAL | OT_PORT_F32}, {0}};
static const ot_port sce_grad_in[] = {LOSS_GRAD_IN("log_prob", "label"), {0}};
static const ot_port sce_internal_grad_in[] = {
    LOSS_GRAD_IN("log_prob", "label"),
    {"ignore_index", "i64", OT_PORT_OPTIONAL},
    {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
    {0},
};
static const ot_port sce_grad_out[] = {{"d_logits", "T", OT_PORT_F32}, {0}};
static const ot_attr_spec loss_attrs[] = {LOSS_ATTRS, {0}};
static const ot_attr_spec loss_internal_attrs[] = {
    LOSS_ATTRS, {.name = "output_type", .kind = OT_ATTRIBUTE_INT}, {0}};

#define RECORD(domain_, name_, since_, in, out, attributes, infer_, kernels_, ...)                 \
    {                                                                                              \
        {.domain = domain_,                                                                        \
         .name = name_,                                                                            \
         .since = since_,                                                                          \
         .inputs = in,                                                                             \
         .outputs = out,                                                                           \
         .attrs = attributes,                                                                      \
         .types = "T: f32 f64; Tind: i32 i64",                                                     \
         .infer = infer_,                                                                          \
         .kernels = kernels_,                                                                      \
         __VA_ARGS__},                                                                             \
            {0},                                                                                   \
    }
const ot_op_def ot__op_negative_log_likelihood_loss[] =
    RECORD(NULL, "NegativeLogLikelihoodLoss", 12, nll_in, nll_out, loss_attrs, loss_infer,
           nll_kernels, .grad = nll_grad);
const ot_op_def ot__op_negative_log_likelihood_loss_grad[] = RECORD(
    "ai.onnxtrain", "NegativeLogLikelihoodLossGrad", 1, nll_grad_in, nll_grad_out, loss_attrs,
    loss_grad_infer, nll_grad_kernels, .flags = OT_OP_NO_GRAD, .expand = ot__nll_grad_expand);
const ot_op_def ot__op_softmax_cross_entropy_loss[] =
    RECORD(NULL, "SoftmaxCrossEntropyLoss", 12, sce_in, sce_out, loss_attrs, loss_infer,
           sce_kernels, .grad = sce_grad);
const ot_op_def ot__op_softmax_cross_entropy_loss_grad[] = RECORD(
    OT__MS, "SoftmaxCrossEntropyLossGrad", 1, sce_grad_in, sce_grad_out, loss_attrs,
    loss_grad_infer, sce_grad_kernels, .flags = OT_OP_NO_GRAD, .expand = ot__sce_grad_expand);
// With the ignored label as an input: ONNX Runtime's forms after its fusions.
// By the references alone.
const ot_op_def ot__op_softmax_cross_entropy_loss_internal[] = RECORD(
    OT__MS, "SoftmaxCrossEntropyLossInternal", 1, sce_internal_in, sce_out, loss_internal_attrs,
    loss_infer, sce_kernels + FIRST_REFERENCE, .grad = sce_internal_grad);
const ot_op_def ot__op_softmax_cross_entropy_loss_internal_grad[] =
    RECORD(OT__MS, "SoftmaxCrossEntropyLossInternalGrad", 1, sce_internal_grad_in, sce_grad_out,
           loss_internal_attrs, loss_grad_infer, sce_grad_kernels + FIRST_REFERENCE,
           .flags = OT_OP_NO_GRAD);
