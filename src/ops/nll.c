#include "ops/nll.h"

#include <string.h>

const ot_attr_spec ot__nll_attrs[] = {
    {.name = "reduction", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "mean"},
    {.name = "ignore_index", .kind = OT_ATTRIBUTE_INT},
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

bool ot__nll_infer_loss(ot_infer *c, int scores, int labels, int weight)
{
    const ot_shape *x = ot_infer_shape(c, scores), *t = ot_infer_shape(c, labels);
    ot__loss_reduction reduction;
    bool fits = x->ndim >= 2 && t->ndim == x->ndim - 1;

    if (!reduction_of(ot_infer_node(c), &reduction)) {
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
    ot_infer_set(c, 0, ot_infer_dtype(c, scores),
                 reduction == OT__LOSS_NONE ? t : &OT_SHAPE_SCALAR);
    return true;
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
