// SPDX-License-Identifier: Apache-2.0
// transformer_layer_recompute: the layers of a transformer. One begins with the output of a
// normalisation or a Dropout that four inputs read (query, key, value and the sum around
// attention), and ends with the normalisation that comes first behind its Gelu: the rule of ONNX
// Runtime's ORTTrainer. Where that finds none, layers begin with what is added to what attention
// makes, wherever normalisations stand and however many products make query, key and value.
#include "passes/recompute.h"

#include <string.h>

enum { N_READERS = 4, VALUES = 2 }; // the second: an input of attention

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

// Nodes to visit, each once, the least number first: a heap.
typedef struct layer_queue {
    int *item;
    int n;
} layer_queue;

static void layer_push(layer_queue *q, int number)
{
    int at = q->n++;

    for (; at > 0 && q->item[(at - 1) / 2] > number; at = (at - 1) / 2)
        q->item[at] = q->item[(at - 1) / 2];
    q->item[at] = number;
}

static int layer_pop(layer_queue *q)
{
    const int least = q->item[0], last = q->item[--q->n];
    int at = 0;

    for (int next; (next = 2 * at + 1) < q->n; at = next) {
        next += next + 1 < q->n && q->item[next + 1] < q->item[next];
        if (q->item[next] >= last)
            break;
        q->item[at] = q->item[next];
    }
    q->item[at] = last;
    return least;
}

// Of one Softmax after another: what is made of its weights, and what the product that it gives
// them to is made of, each only as far as asked for. Marks are numbers of Softmaxes plus 1.
typedef struct attention_search {
    const ot__matching *m;
    int mark;
    int *below, *above;   // per value
    int *is_queued[2];    // per node, in a queue of
    layer_queue down, up; // readers; makers, by their number from the last node
    int *last_sum;        // per node: the last Add that may go around it; -1: none
} attention_search;

static int *layer_mark(const attention_search *s, int *marks, const ot_value *value)
{
    return &marks[ot__value_number(&s->m->uses.numbers, value)];
}

static bool is_below(const attention_search *s, const ot_value *value)
{
    return *layer_mark(s, s->below, value) == s->mark;
}

static void mark_layer_below(attention_search *s, const ot_value *value)
{
    const ot__uses *uses = &s->m->uses;

    *layer_mark(s, s->below, value) = s->mark;
    for (int u = ot__uses_first(uses, value); u < ot__uses_end(uses, value); u++) {
        const int reader = ot__node_number(&uses->numbers, uses->use[u].node);

        if (s->m->is_forward[reader] && uses->use[u].i_input >= 0 &&
            s->is_queued[0][reader] != s->mark) {
            s->is_queued[0][reader] = s->mark;
            layer_push(&s->down, reader);
        }
    }
}

static void mark_layer_above(attention_search *s, const ot_value *value)
{
    int maker;

    *layer_mark(s, s->above, value) = s->mark;
    if (value->producer == NULL)
        return;
    maker = ot__node_number(&s->m->uses.numbers, value->producer);
    if (s->is_queued[1][maker] != s->mark) {
        s->is_queued[1][maker] = s->mark;
        layer_push(&s->up, s->m->graph->n_nodes - 1 - maker);
    }
}

// Whether the product is made of the value. Makers run before readers, so those before the value's
// need not be visited.
static bool is_above(attention_search *s, const ot_value *value)
{
    const int n = s->m->graph->n_nodes;
    const int first =
        value->producer == NULL ? -1 : ot__node_number(&s->m->uses.numbers, value->producer);

    while (s->up.n > 0 && n - 1 - s->up.item[0] > first) {
        const ot_node *maker = s->m->graph->nodes[n - 1 - layer_pop(&s->up)];

        for (int i = 0; i < maker->n_inputs; i++)
            if (maker->inputs[i] != NULL)
                mark_layer_above(s, maker->inputs[i]);
    }
    return *layer_mark(s, s->above, value) == s->mark;
}

// The product that a Softmax gives its weights to, perhaps through a Dropout and masks; attention
// that is one operator is its own. NULL: none.
static const ot_node *attention_product(const ot__matching *m, const ot_node *softmax)
{
    const ot_node *node =
        ot__match_attention_node(softmax) ? softmax : ot__forward_reader(m, softmax->outputs[0], 0);

    while (node != NULL && node->outputs[0] != NULL &&
           (ot__node_rearranges(node) || ot__node_is(node, "", "Dropout") ||
            ot__node_is(node, "", "IsNaN") || ot__node_is(node, "", "Where")))
        node = ot__forward_reader(m, node->outputs[0], 0);
    return node != NULL && (ot__node_is(node, "", "MatMul") || node == softmax) ? node : NULL;
}

// The operand of a sum that goes around attention: not made of its weights, it makes its values.
static ot_value *operand_around(attention_search *s, const ot_node *sum)
{
    for (int i = 0; i < 2; i++) {
        ot_value *x = sum->inputs[i];

        if (is_below(s, x) || !is_below(s, sum->inputs[1 - i]) ||
            !ot__shape_equal(&x->shape, &sum->outputs[0]->shape))
            continue;
        while (!is_above(s, x) && x->producer != NULL && ot__node_rearranges(x->producer))
            x = x->producer->inputs[0];
        if (is_above(s, x) && x->constant == NULL)
            return x;
    }
    return NULL;
}

// What the layer of this Softmax begins with; NULL: it belongs to no self-attention with a sum
// around it.
static ot_value *start_of_attention(attention_search *s, int i_softmax)
{
    ot_node *const *nodes = s->m->graph->nodes;
    const ot_node *product = attention_product(s->m, nodes[i_softmax]);
    ot_value *start = NULL;
    int i_product;

    if (product == NULL)
        return NULL;
    i_product = ot__node_number(&s->m->uses.numbers, product);
    s->mark = i_softmax + 1;
    s->down.n = s->up.n = 0;
    mark_layer_below(s, nodes[i_softmax]->outputs[0]);
    if (i_product == i_softmax)
        mark_layer_above(s, product->inputs[VALUES]);
    while (start == NULL && s->down.n > 0 && s->down.item[0] <= s->last_sum[i_product]) {
        const int k = layer_pop(&s->down);

        for (int i = 0; k == i_product && i < 2; i++)
            if (!is_below(s, product->inputs[i]))
                mark_layer_above(s, product->inputs[i]);
        if (k > i_product && ot__node_is(nodes[k], "", "Add"))
            start = operand_around(s, nodes[k]);
        for (int i = 0; i < nodes[k]->n_outputs; i++)
            if (nodes[k]->outputs[i] != NULL)
                mark_layer_below(s, nodes[k]->outputs[i]);
    }
    return start;
}

// Where an operand of an Add, as large as the sum, is there before a node already.
static void find_last_sums(attention_search *s)
{
    const ot_graph *graph = s->m->graph;

    for (int k = 0; k < graph->n_nodes; k++)
        s->last_sum[k] = -1;
    for (int k = 0; k < graph->n_nodes; k++) {
        const ot_node *sum = graph->nodes[k];

        for (int i = 0; s->m->is_forward[k] && ot__node_is(sum, "", "Add") && i < 2; i++) {
            ot_value *x = sum->inputs[i];
            const ot_node *maker;

            if (x->constant != NULL || !ot__shape_equal(&x->shape, &sum->outputs[0]->shape))
                continue;
            x = ot__before_rearranging(x);
            maker = x->producer;
            s->last_sum[maker == NULL ? 0 : ot__node_number(&s->m->uses.numbers, maker)] = k;
        }
    }
    for (int k = 1; k < graph->n_nodes; k++)
        s->last_sum[k] = OT_MAX(s->last_sum[k], s->last_sum[k - 1]);
}

// A layer ends with what the next one begins with, which is made of what it begins with itself: so
// the last has no end.
static void find_around_attention(attention_search *s, layers *l)
{
    const ot__matching *m = s->m;

    l->n_starts = l->n_ends = 0;
    find_last_sums(s);
    for (int k = 0; k < m->graph->n_nodes; k++) {
        ot_value *start;

        if (!m->is_forward[k] || !(ot__node_is(m->graph->nodes[k], "", "Softmax") ||
                                   ot__match_attention_node(m->graph->nodes[k])))
            continue;
        start = start_of_attention(s, k);
        if (start == NULL || (l->n_starts > 0 && l->starts[l->n_starts - 1] == start))
            continue;
        if (l->n_starts > 0)
            l->ends[l->n_ends++] = start;
        l->starts[l->n_starts++] = start;
    }
}

static ot_status find_transformer_layers(const ot__matching *m, layers *l)
{
    const size_t n = (size_t)m->uses.numbers.n_values + 1, n_nodes = (size_t)m->graph->n_nodes + 1;
    attention_search s = {.m = m};

    find_between_norms(m, l);
    if (l->n_starts > 1 && l->n_starts == l->n_ends)
        return OT_OK;
    s.below = ot__alloc_zero(2 * n + 5 * n_nodes, sizeof *s.below);
    OT_TRY(ot__made(s.below != NULL));
    s.above = s.below + n;
    s.is_queued[0] = s.above + n;
    s.is_queued[1] = s.is_queued[0] + n_nodes;
    s.down.item = s.is_queued[1] + n_nodes;
    s.up.item = s.down.item + n_nodes;
    s.last_sum = s.up.item + n_nodes;
    find_around_attention(&s, l);
    ot__free(s.below);
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
