// SPDX-License-Identifier: Apache-2.0
// transformer_layer_recompute: the layers of a transformer. One begins with the output of a
// normalisation or a Dropout that four inputs read (query, key, value and the sum around
// attention), and ends with the normalisation that comes first behind its Gelu: the rule of ONNX
// Runtime's ORTTrainer. Where that finds none, layers begin with what is added to what attention
// makes, wherever normalisations stand and however many products make query, key and value.
#include "passes/recompute.h"

#include <string.h>

enum { N_READERS = 4 };

static const ot_node *made_by(const ot_value *value, const char *op_type)
{
    const ot_node *node = value != NULL ? value->producer : NULL;

    return ot__node_is(node, "", op_type) ? node : NULL;
}

// The factor of a normalisation written in other operators: (x - mean) / sqrt(variance).
static bool is_normalised(const ot_value *value)
{
    const ot_node *div = made_by(value, "Div");

    return div != NULL && made_by(div->inputs[0], "Sub") != NULL &&
           made_by(div->inputs[1], "Sqrt") != NULL;
}

// The last node of a normalisation over features.
static bool is_norm(const ot_node *node)
{
    const ot_node *mul;

    if (ot__node_is(node, "", "LayerNormalization"))
        return true;
    if (!ot__node_is(node, "", "Add"))
        return false;
    mul = made_by(node->inputs[0], "Mul");
    if (mul == NULL)
        mul = made_by(node->inputs[1], "Mul");
    return mul != NULL && (is_normalised(mul->inputs[0]) || is_normalised(mul->inputs[1]));
}

static bool starts_layer(const ot__matching *m, const ot_node *node)
{
    const ot_value *y = node->n_outputs > 0 ? node->outputs[0] : NULL;
    int n = 0;

    if (y == NULL || !(is_norm(node) || ot__node_is(node, "", "Dropout")))
        return false;
    for (int u = ot__uses_first(&m->uses, y); u < ot__uses_end(&m->uses, y); u++)
        n += m->is_forward[ot__node_number(&m->uses.numbers, m->uses.use[u].node)];
    return n == N_READERS;
}

// By first readers to a normalisation; NULL: none comes.
static ot_value *find_layer_end(const ot__matching *m, const ot_value *value)
{
    for (const ot_node *node; (node = ot__forward_reader(m, value, 0)) != NULL;) {
        if (node->n_outputs == 0 || node->outputs[0] == NULL)
            return NULL;
        if (is_norm(node))
            return node->outputs[0];
        value = node->outputs[0];
    }
    return NULL;
}

typedef struct layers {
    ot_value **starts, **ends; // of the second as many as layers that can be made again
    int n_starts, n_ends;
} layers;

// As ORTTrainer finds them.
static void find_between_norms(const ot__matching *m, layers *l)
{
    for (int k = 0; k < m->graph->n_nodes; k++) {
        ot_node *node = m->graph->nodes[k];
        ot_value *x, *y, *end;

        if (!m->is_forward[k])
            continue;
        if (starts_layer(m, node))
            l->starts[l->n_starts++] = node->outputs[0];
        y = ot__match_gelu(m, node, &x);
        end = y == NULL ? NULL : find_layer_end(m, y);
        if (end != NULL && (l->n_ends == 0 || l->ends[l->n_ends - 1] != end))
            l->ends[l->n_ends++] = end;
    }
}

// ---- by attention ----

static bool *layer_mark(const ot__matching *m, bool *marks, const ot_value *value)
{
    return &marks[ot__value_number(&m->uses.numbers, value)];
}

// Marks what forward nodes from number `from` on make of marked values.
static void mark_layer_below(const ot__matching *m, int from, bool *marks)
{
    for (int k = from; k < m->graph->n_nodes; k++) {
        const ot_node *node = m->graph->nodes[k];
        bool is_below = false;

        for (int i = 0; m->is_forward[k] && i < node->n_inputs; i++)
            is_below |= node->inputs[i] != NULL && *layer_mark(m, marks, node->inputs[i]);
        for (int i = 0; is_below && i < node->n_outputs; i++)
            if (node->outputs[i] != NULL)
                *layer_mark(m, marks, node->outputs[i]) = true;
    }
}

// Marks what nodes up to number `to` make marked values of.
static void mark_layer_above(const ot__matching *m, int to, bool *marks)
{
    for (int k = to; k >= 0; k--) {
        const ot_node *node = m->graph->nodes[k];
        bool is_above = false;

        for (int i = 0; i < node->n_outputs; i++)
            is_above |= node->outputs[i] != NULL && *layer_mark(m, marks, node->outputs[i]);
        for (int i = 0; is_above && i < node->n_inputs; i++)
            if (node->inputs[i] != NULL)
                *layer_mark(m, marks, node->inputs[i]) = true;
    }
}

// The product that a Softmax gives its weights to, perhaps through a Dropout and masks; NULL: none.
static const ot_node *attention_product(const ot__matching *m, const ot_node *softmax)
{
    const ot_node *node = ot__forward_reader(m, softmax->outputs[0], 0);

    while (node != NULL && node->outputs[0] != NULL &&
           (ot__node_rearranges(node) || ot__node_is(node, "", "Dropout") ||
            ot__node_is(node, "", "IsNaN") || ot__node_is(node, "", "Where")))
        node = ot__forward_reader(m, node->outputs[0], 0);
    return node != NULL && ot__node_is(node, "", "MatMul") ? node : NULL;
}

// The operand of a sum that goes around attention: `below` is made of its weights, `above` makes
// its values.
static ot_value *operand_around(const ot__matching *m, const ot_node *sum, bool *below, bool *above)
{
    for (int i = 0; i < 2; i++) {
        ot_value *x = sum->inputs[i];

        if (*layer_mark(m, below, x) || !*layer_mark(m, below, sum->inputs[1 - i]) ||
            !ot__shape_equal(&x->shape, &sum->outputs[0]->shape))
            continue;
        while (!*layer_mark(m, above, x) && x->producer != NULL && ot__node_rearranges(x->producer))
            x = x->producer->inputs[0];
        if (*layer_mark(m, above, x) && x->constant == NULL)
            return x;
    }
    return NULL;
}

// What the layer of this Softmax begins with; NULL: it belongs to no self-attention with a sum
// around it.
static ot_value *start_of_attention(const ot__matching *m, int i_softmax, bool *below, bool *above)
{
    const ot_node *softmax = m->graph->nodes[i_softmax];
    const ot_node *product = attention_product(m, softmax);
    ot_value *start = NULL;
    int i_product;

    if (product == NULL)
        return NULL;
    i_product = ot__node_number(&m->uses.numbers, product);
    *layer_mark(m, below, softmax->outputs[0]) = true;
    mark_layer_below(m, i_softmax + 1, below);
    for (int i = 0; i < 2; i++)
        if (!*layer_mark(m, below, product->inputs[i]))
            *layer_mark(m, above, product->inputs[i]) = true;
    mark_layer_above(m, i_product, above);
    for (int k = i_product + 1; start == NULL && k < m->graph->n_nodes; k++)
        if (m->is_forward[k] && ot__node_is(m->graph->nodes[k], "", "Add"))
            start = operand_around(m, m->graph->nodes[k], below, above);
    return start;
}

// A layer ends with what the next one begins with, which is made of what it begins with itself: so
// the last has no end.
static void find_around_attention(const ot__matching *m, layers *l, bool *below, bool *above)
{
    const size_t n = (size_t)m->uses.numbers.n_values;

    l->n_starts = l->n_ends = 0;
    for (int k = 0; k < m->graph->n_nodes; k++) {
        ot_value *start;

        if (!m->is_forward[k] || !ot__node_is(m->graph->nodes[k], "", "Softmax"))
            continue;
        memset(below, 0, n * sizeof *below);
        memset(above, 0, n * sizeof *above);
        start = start_of_attention(m, k, below, above);
        if (start == NULL || (l->n_starts > 0 && l->starts[l->n_starts - 1] == start))
            continue;
        if (l->n_starts > 0)
            l->ends[l->n_ends++] = start;
        l->starts[l->n_starts++] = start;
    }
}

static ot_status find_transformer_layers(const ot__matching *m, layers *l)
{
    const size_t n = (size_t)m->uses.numbers.n_values + 1;
    bool *marks;

    find_between_norms(m, l);
    if (l->n_starts > 1 && l->n_starts == l->n_ends)
        return OT_OK;
    marks = ot__alloc_zero(2 * n, sizeof *marks);
    OT_TRY(ot__made(marks != NULL));
    find_around_attention(m, l, marks, marks + n);
    ot__free(marks);
    return OT_OK;
}

static ot_status add_layers(ot__matching *m, const layers *l, int n_layers, bool warns)
{
    const int most = l->n_starts - 1;

    if (most < 1 && warns)
        ot__log(OT_LOG_WARNING,
                "transformer_layer_recompute: %d layers are found, expected at least 2, since all "
                "but the last are made again; a layer begins with what is added to what attention "
                "makes (Softmax before MatMul)",
                l->n_starts);
    else if (n_layers > most && warns)
        ot__log(OT_LOG_WARNING,
                "number_recompute_layers is %d, the model has %d layers: all but the last are made "
                "again",
                n_layers, l->n_starts);
    if (n_layers == 0 || n_layers > most)
        n_layers = most;
    for (int i = 0; i < n_layers; i++)
        OT_TRY(ot__add_region(m, l->starts[i], l->ends[i], false));
    return OT_OK;
}

ot_status ot__match_recompute_layer(ot__matching *m, int n_layers, bool warns)
{
    const size_t n = (size_t)m->graph->n_nodes + 1;
    layers l = {.starts = ot__alloc_zero(2 * n, sizeof(ot_value *))};
    ot_status st = ot__made(l.starts != NULL);

    l.ends = l.starts + n;
    OT_THEN(st, find_transformer_layers(m, &l));
    OT_THEN(st, add_layers(m, &l, n_layers, warns));
    ot__free(l.starts);
    return st;
}
