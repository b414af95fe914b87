// SPDX-License-Identifier: Apache-2.0
// Einsum: inputs are multiplied one after the other, two at a time. What both have and nobody needs
// any more is summed by a MatMul, whose batches are the axes that both have and that are needed.
#include "ops/einsum/contract.h"
#include "ops/einsum/einsum.h"

// ---- inference ----

static const char *label_text(uint8_t label, char *text)
{
    const int half = OT__EINSUM_LETTERS / 2;

    text[0] = (char)(label < half ? 'A' + label : 'a' + label - half);
    text[1] = '\0';
    return label < OT__EINSUM_LETTERS ? text : "an axis of '...'";
}

// `size`, so far, of a label is also `other`.
static bool merge_size(ot_infer *c, int input, uint8_t label, int64_t other, bool may_stretch,
                       int64_t *size)
{
    const int64_t found = *size;
    char text[2];

    if (ot__dim_same(found, other) || (may_stretch && other == 1))
        return true;
    if (ot__dim_differs(found, other) && !(may_stretch && found == 1))
        return ot__refuse(c,
                          "input %d has size %" PRId64 " along '%s' of the equation, another axis"
                          " has %" PRId64,
                          input, other, label_text(label, text), found);
    if (ot_dim_is_number(other) || (may_stretch && found == 1))
        *size = other;
    else if (!ot_dim_is_number(found))
        *size = ot_dim_unknown(); // either may be 1
    return true;
}

static bool infer_sizes(ot_infer *c, const ot__einsum *e, int64_t *size)
{
    bool has[OT__EINSUM_LABELS] = {false};

    for (int i = 0; i < e->n_inputs; i++) {
        const ot__einsum_term *term = &e->in[i];
        const ot_shape *x = ot_infer_shape(c, i);

        for (int k = 0; k < term->n; k++) {
            const uint8_t label = term->label[k];
            const int first = ot__einsum_find(term, label);
            int64_t diagonal = x->dim[first];

            if (first < k) { // of a diagonal, both are as long
                if (!merge_size(c, i, label, x->dim[k], false, &diagonal))
                    return false;
            } else if (!has[label]) {
                size[label] = x->dim[k];
                has[label] = true;
            } else if (!merge_size(c, i, label, x->dim[k], true, &size[label])) {
                return false;
            }
        }
    }
    return true;
}

static void einsum_infer(ot_infer *c)
{
    int64_t size[OT__EINSUM_LABELS];
    ot_shape y = {0};
    ot__einsum e;

    if (!ot__einsum_read(c, ot_infer_node(c), &e) || !infer_sizes(c, &e, size))
        return;
    y.ndim = e.out.n;
    for (int k = 0; k < y.ndim; k++)
        y.dim[k] = size[e.out.label[k]];
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

// ---- what it is composed of ----

// No elements: the sums are of none.
static bool is_empty_sum(ot_grad *g)
{
    const ot_value *y = ot_grad_node(g)->outputs[0];

    if (y == NULL || !ot_value_has_shape(y) || !ot__shape_is_static(ot_value_shape(y)))
        return false;
    for (int i = 0; i < ot_grad_input_count(g); i++) {
        const ot_shape *x = ot_value_shape(ot_grad_x(g, i));

        for (int k = 0; k < x->ndim; k++)
            if (x->dim[k] == 0)
                return true;
    }
    return false;
}

static void einsum_compose(ot_grad *g)
{
    ot__operand a, b;
    ot__einsum e;

    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (!ot_value_has_shape(ot_grad_x(g, i)))
            return;
    if (!ot__einsum_read(NULL, ot_grad_node(g), &e))
        return;
    if (is_empty_sum(g)) {
        ot_expand_set(g, 0, ot_emit_zeros_like(g, ot_grad_node(g)->outputs[0]));
        return;
    }
    a = ot__operand_of(g, &e, 0);
    for (int i = 1; i < e.n_inputs; i++) {
        b = ot__operand_of(g, &e, i);
        a = ot__contract(g, &e, i + 1, &a, &b);
    }
    ot_expand_set(g, 0, ot__operand_ordered(g, &e, &a));
}

static const ot_port einsum_in[] = {{"Inputs", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port einsum_out[] = {{"Output", "T", 0}, {0}};
static const ot_attr_spec einsum_attrs[] = {
    {.name = "equation", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_REQUIRED}, {0}};
const ot_op_def ot__op_einsum[] = {
    {.name = "Einsum",
     .since = 12,
     .inputs = einsum_in,
     .outputs = einsum_out,
     .attrs = einsum_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = einsum_infer,
     .train = einsum_compose},
    {0},
};
