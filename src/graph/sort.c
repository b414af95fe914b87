// SPDX-License-Identifier: Apache-2.0
// Topological order and cycles.
#include <string.h>

#include "graph/graph_internal.h"

// Nodes are taken when all they read is there, the first in the file among these: a topological
// order stays as it is.
typedef struct sorting {
    ot_graph *graph;
    ot__uses uses;
    int *n_missing; // per node: reads of outputs of nodes not taken yet
    int *ready;     // binary heap of node indices, smallest first
    int n_ready;
    ot_node **order;
    int n_order;
} sorting;

static void node_ready(sorting *s, int node)
{
    int at = s->n_ready++;

    while (at > 0 && s->ready[(at - 1) / 2] > node) {
        s->ready[at] = s->ready[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->ready[at] = node;
}

static int take_ready(sorting *s)
{
    int first = s->ready[0], last = s->ready[--s->n_ready], at = 0;

    for (;;) {
        int child = 2 * at + 1;

        if (child + 1 < s->n_ready && s->ready[child + 1] < s->ready[child])
            child++;
        if (child >= s->n_ready || s->ready[child] >= last)
            break;
        s->ready[at] = s->ready[child];
        at = child;
    }
    s->ready[at] = last;
    return first;
}

static int reader(const sorting *s, int u)
{
    return ot__node_number(&s->uses.numbers, s->uses.use[u].node);
}

static void take_sorted(sorting *s, int i_node)
{
    ot_node *node = s->graph->nodes[i_node];

    s->order[s->n_order++] = node;
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *value = node->outputs[i];

        if (!value || value->producer != node || value->i_producer_output != i)
            continue;
        for (int u = ot__uses_first(&s->uses, value); u < ot__uses_end(&s->uses, value); u++)
            if (--s->n_missing[reader(s, u)] == 0)
                node_ready(s, reader(s, u));
    }
}

static ot_status sort(sorting *s, ot_graph *graph)
{
    size_t n = (size_t)graph->n_nodes;

    *s = (sorting){.graph = graph};
    OT_TRY(ot__uses_build(graph, &s->uses));
    s->n_missing = ot__alloc_zero(n, sizeof *s->n_missing);
    s->ready = ot__alloc_zero(n, sizeof *s->ready);
    s->order = ot__alloc_zero(n, sizeof(ot_node *));
    OT_TRY(ot__made(s->n_missing && s->ready && s->order));
    for (int v = 0; v < s->uses.numbers.n_values; v++) {
        const ot_node *producer = s->uses.numbers.values[v]->producer;

        if (producer && producer->graph == graph)
            for (int u = s->uses.first[v]; u < s->uses.first[v + 1]; u++)
                s->n_missing[reader(s, u)]++;
    }
    for (int i = 0; i < graph->n_nodes; i++)
        if (s->n_missing[i] == 0)
            node_ready(s, i);
    while (s->n_ready > 0)
        take_sorted(s, take_ready(s));
    return OT_OK;
}

static void sort_deinit(sorting *s)
{
    ot__uses_deinit(&s->uses);
    ot__free(s->n_missing);
    ot__free(s->ready);
    ot__free(s->order);
}

static void remember_missing(void *context, ot_value *value)
{
    sorting *s = context;
    const ot_node *producer = value ? value->producer : NULL;

    if (producer && ot__has_node_number(&s->uses.numbers, producer) &&
        s->n_missing[ot__node_number(&s->uses.numbers, producer)] > 0)
        s->ready[0] = ot__node_number(&s->uses.numbers, producer);
}

// Among nodes that wait, each waits for another one: going back often enough ends on a cycle.
static const ot_node *node_on_cycle(sorting *s)
{
    int at = 0;

    if (s->n_order == s->graph->n_nodes)
        return NULL;
    while (s->n_missing[at] == 0)
        at++;
    for (int step = 0; step < s->graph->n_nodes; step++) {
        const ot_node *node = s->graph->nodes[at];

        for (int i = 0; i < node->n_inputs; i++)
            remember_missing(s, node->inputs[i]);
        ot__node_visit_captures(node, remember_missing, s);
        at = s->ready[0];
    }
    return s->graph->nodes[at];
}

const ot_node *ot__graph_find_cycle(ot_graph *graph)
{
    const ot_node *found = NULL;
    sorting s;

    if (sort(&s, graph) == OT_OK)
        found = node_on_cycle(&s);
    sort_deinit(&s);
    return found;
}

static ot_status reorder(sorting *s)
{
    const ot_node *on_cycle = node_on_cycle(s);

    if (on_cycle)
        return ot__error(OT_ERR_FORMAT, "%s depends on its own output", OT_LABEL(on_cycle));
    for (int i = 0; i < s->graph->n_nodes; i++)
        s->graph->nodes[i] = s->order[i];
    return OT_OK;
}

ot_status ot__graph_sort(ot_graph *graph)
{
    sorting s;
    ot_status st = sort(&s, graph);

    OT_THEN(st, reorder(&s));
    sort_deinit(&s);
    return st;
}
