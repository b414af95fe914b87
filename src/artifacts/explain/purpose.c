// SPDX-License-Identifier: Apache-2.0
// What initializers are for, through operators that move elements and compute nothing.
#include <string.h>

#include "artifacts/parameters.h"
#include "passes/passes.h"

// The Softmax that all readers of a value lead to: by moving and adding, and, before it has been
// added, only by way of an addition. NULL: nobody reads it.
typedef struct destination {
    const ot_node *before, *added;
    const ot_node *reader; // the first that does not just move it
    bool has_role;         // somebody takes it as weight, bias, scale, table or statistic
} destination;

typedef struct flow {
    const ot_graph *graph;
    const ot__numbers *numbers;
    destination *to; // per value
} flow;

static const ot_node elsewhere; // readers that do other things

static const ot_node *join_purposes(const ot_node *a, const ot_node *b)
{
    if (!a || !b)
        return a ? a : b;
    return a == &elsewhere || b == &elsewhere ? &elsewhere : a;
}

static destination *at(const flow *f, const ot_value *value)
{
    return &f->to[ot__value_number(f->numbers, value)];
}

static destination of_outputs(const flow *f, const ot_node *node)
{
    destination out = {0};

    for (int i = 0; i < node->n_outputs; i++) {
        const destination *to = node->outputs[i] ? at(f, node->outputs[i]) : NULL;

        if (!to)
            continue;
        out.before = join_purposes(out.before, to->before);
        out.added = join_purposes(out.added, to->added);
        out.reader = out.reader ? out.reader : to->reader;
        out.has_role = out.has_role || to->has_role;
    }
    return out;
}

// What an Add adds to a product is a bias only when it has one axis: scores of attention are
// products, too.
static bool has_purpose(const ot_node *node, int i)
{
    const ot_value *value = node->inputs[i];
    int n_axes = 0;

    for (int k = 0; k < value->shape.ndim; k++)
        n_axes += value->shape.dim[k] != 1;
    return ot__node_input_role(node, i) != OT_PORT_ROLE_OTHER &&
           (!ot__node_adds(node) || !value->has_shape || n_axes <= 1);
}

static void purpose_of_input(flow *f, const ot_node *node, int i)
{
    const destination out = of_outputs(f, node);
    destination *to = at(f, node->inputs[i]);

    to->has_role = to->has_role || has_purpose(node, i);
    if (ot__node_moves(node, i)) {
        to->before = join_purposes(to->before, out.before);
        to->added = join_purposes(to->added, out.added);
        to->reader = out.reader ? out.reader : to->reader;
        to->has_role = to->has_role || out.has_role;
        return;
    }
    to->before = join_purposes(to->before, ot__node_adds(node) ? out.added : &elsewhere);
    to->added = join_purposes(to->added, ot__node_adds(node)              ? out.added
                                         : ot__node_takes_scores(node, i) ? node
                                                                          : &elsewhere);
    to->reader = node;
}

static void leads_elsewhere(void *context, ot_value *value)
{
    destination *to = at(context, value);

    to->before = to->added = &elsewhere;
}

static void follow_readers(flow *f)
{
    const ot_graph *graph = f->graph;

    for (int i = 0; i < graph->n_outputs; i++)
        leads_elsewhere(f, graph->outputs[i]);
    for (int k = graph->n_nodes - 1; k >= 0; k--) {
        const ot_node *node = graph->nodes[k];

        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i])
                purpose_of_input(f, node, i);
        ot__node_visit_captures(node, leads_elsewhere, f);
    }
}

// Scales and biases of normalisations that an exporter wrote in other operators.
static ot_status find_norm_operands(flow *f, const ot__uses *uses)
{
    for (int k = 0; k < f->graph->n_nodes; k++) {
        ot_value *scale, *bias;

        OT_TRY(ot__match_norm_operands(uses, f->graph->nodes[k], &scale, &bias));
        if (scale)
            at(f, scale)->has_role = true;
        if (bias)
            at(f, bias)->has_role = true;
    }
    return OT_OK;
}

ot_status ot__candidates_find_purposes(ot__candidates *c, const ot__uses *uses)
{
    flow f = {.graph = c->graph, .numbers = &uses->numbers};
    ot_status st;

    f.to = ot__alloc_zero((size_t)uses->numbers.n_values + 1, sizeof *f.to);
    st = ot__made(f.to);
    OT_THEN(st, find_norm_operands(&f, uses));
    if (st == OT_OK)
        follow_readers(&f);
    for (int i = 0; st == OT_OK && i < c->n; i++) {
        const destination *to = at(&f, c->items[i].value);

        c->items[i].reader = to->reader;
        c->items[i].has_role = to->has_role;
        c->items[i].softmax = to->before == &elsewhere ? NULL : to->before;
    }
    ot__free(f.to);
    return st;
}
