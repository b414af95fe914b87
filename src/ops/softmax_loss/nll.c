// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax_loss/nll.h"

#include <string.h>

const ot_attr_spec ot__nll_attrs[] = {
    {.name = "reduction", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "mean"},
    {.name = "ignore_index", .kind = OT_ATTRIBUTE_INT},
    {0},
};

const ot_attr_spec ot__nll_internal_attrs[] = {
    {.name = "reduction", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "mean"},
    {.name = "ignore_index", .kind = OT_ATTRIBUTE_INT},
    {.name = "output_type", .kind = OT_ATTRIBUTE_INT},
    {0},
};

static bool reduction_of(const ot_node *node, ot__loss_reduction *out)
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

static bool check_inputs(ot_infer *c, int scores, int labels, int weight,
                         ot__loss_reduction *reduction)
{
    const ot_shape *x = ot_infer_shape(c, scores), *t = ot_infer_shape(c, labels);
    bool fits = x->ndim >= 2 && t->ndim == x->ndim - 1;

    if (!reduction_of(ot_infer_node(c), reduction)) {
        ot_infer_fail(c, "reduction is '%s', expected none, sum or mean",
                      ot_attr_string(ot_infer_node(c), "reduction"));
        return false;
    }
    for (int i = 0; fits && i < t->ndim; i++)
        fits = same_or_symbolic(t->dim[i], x->dim[i == 0 ? 0 : i + 1]);
    if (!fits) {
        ot_infer_fail(c,
                      "labels must have the shape of the scores without axis 1, got %d and %d axes",
                      t->ndim, x->ndim);
        return false;
    }
    if (ot_infer_has(c, weight) &&
        (ot_infer_shape(c, weight)->ndim != 1 ||
         !same_or_symbolic(ot_infer_shape(c, weight)->dim[0], x->dim[1]))) {
        ot_infer_fail(c, "weight must have one element a class");
        return false;
    }
    return true;
}

bool ot__nll_infer_loss(ot_infer *c, int scores, int labels, int weight)
{
    ot__loss_reduction reduction;

    if (!check_inputs(c, scores, labels, weight, &reduction))
        return false;
    ot_infer_set(c, 0, ot_infer_dtype(c, scores),
                 reduction == OT__LOSS_NONE ? ot_infer_shape(c, labels) : &OT_SHAPE_SCALAR);
    return true;
}

void ot__nll_infer_grad(ot_infer *c)
{
    enum { DY, SCORES, LABELS, WEIGHT };
    ot__loss_reduction reduction;

    if (check_inputs(c, SCORES, LABELS, WEIGHT, &reduction) &&
        (reduction == OT__LOSS_NONE ? ot__infer_matches(c, DY, LABELS)
                                    : ot__infer_one_element(c, DY)))
        ot_infer_set(c, 0, ot_infer_dtype(c, SCORES), ot_infer_shape(c, SCORES));
}

ot_status ot__nll_prepare(ot_prep *p, int scores, int labels)
{
    const ot_node *node = ot_prep_node(p);
    const ot_shape *x = &ot_prep_in(p, scores)->shape;
    ot__nll *nll = ot_prep_state(p, sizeof(*nll));

    if (!nll)
        return OT_ERR_NO_MEMORY;
    *nll = (ot__nll){.n = x->dim[0], .classes = x->dim[1], .inner = 1};
    for (int i = 2; i < x->ndim; i++)
        nll->inner *= x->dim[i];
    (void)reduction_of(node, &nll->reduction); // inference has seen that it is one
    nll->has_ignore = ot_attr_given(node, "ignore_index");
    nll->ignore = nll->has_ignore ? ot_attr_int(node, "ignore_index") : 0;
    nll->labels_are_i32 = ot_prep_in(p, labels)->dtype == OT_I32;
    return OT_OK;
}

ot_status ot__nll_check(const ot__nll *p, const ot_arg *labels)
{
    const int64_t at = ot__ref_nll_check(labels->data, p);

    if (at < 0)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "label %" PRId64 " at position %" PRId64 " is outside 0..%" PRId64,
                     ot__ref_nll_label(labels->data, p, at), at, p->classes - 1);
}

ot__nll ot__nll_with_ignore(const ot_run *r, int port)
{
    ot__nll p = *(const ot__nll *)r->state;

    if (port < r->n_in && r->in[port]) {
        p.has_ignore = true;
        p.ignore = *(const int64_t *)r->in[port]->data;
    }
    return p;
}

ot_status ot__sce_run(const ot__nll *p, const ot_arg *x, const ot_arg *labels, const void *weight,
                      void *log_prob, ot_arg *loss)
{
    OT_TRY(ot__nll_check(p, labels));
    if (x->dtype == OT_F32) {
        ot__ref_log_softmax_f32(log_prob, x->data, p->n, p->classes, p->inner);
        if (loss)
            ot__ref_nll_f32(loss->data, log_prob, labels->data, weight, p);
    } else {
        ot__ref_log_softmax_f64(log_prob, x->data, p->n, p->classes, p->inner);
        if (loss)
            ot__ref_nll_f64(loss->data, log_prob, labels->data, weight, p);
    }
    return OT_OK;
}

ot_status ot__sce_grad_run(const ot__nll *p, const ot_arg *dy, const ot_arg *log_prob,
                           const ot_arg *labels, const void *weight, ot_arg *dx)
{
    OT_TRY(ot__nll_check(p, labels));
    if (log_prob->dtype == OT_F32)
        ot__ref_nll_grad_f32(dx->data, dy->data, log_prob->data, labels->data, weight, true, p);
    else
        ot__ref_nll_grad_f64(dx->data, dy->data, log_prob->data, labels->data, weight, true, p);
    return OT_OK;
}

// Through the loss: (softmax - one-hot) * weight * dLoss. Through log_prob, when it is used:
// LogSoftmax's gradient.
void ot__sce_grad_emit(ot_grad *g, const char *op)
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
