// SPDX-License-Identifier: Apache-2.0
// Who reads what.
#include <limits.h>
#include <string.h>

#include "graph/graph_internal.h"

typedef void (*visitor)(ot__uses *uses, ot_value *value);

typedef struct capture_visit {
    ot__uses *uses;
    ot_node *node;
    visitor visit;
} capture_visit;

static void visit_capture(void *context, ot_value *value)
{
    capture_visit *c = context;

    c->visit(c->uses, value);
}

static void count_mention(void *context, ot_value *value)
{
    (void)value;
    ++*(int64_t *)context;
}

// Values and uses are numbered by int, and there are no more of either than mentions.
static ot_status check_count(const ot_graph *graph)
{
    int64_t n = (int64_t)graph->n_inputs + graph->n_initializers + graph->n_outputs;

    for (int i = 0; i < graph->n_nodes && n < INT_MAX; i++) {
        n += (int64_t)graph->nodes[i]->n_inputs + graph->nodes[i]->n_outputs;
        ot__node_visit_captures(graph->nodes[i], count_mention, &n);
    }
    if (n < INT_MAX)
        return OT_OK;
    return ot__error(OT_ERR_UNSUPPORTED, "the nodes mention values in more than %d places",
                     INT_MAX - 1);
}

// Every value that the graph's lists, nodes and their subgraphs mention, in the order of mention.
static void visit_values(const ot_graph *graph, ot__uses *uses, visitor visit)
{
    for (int i = 0; i < graph->n_inputs; i++)
        visit(uses, graph->inputs[i]);
    for (int i = 0; i < graph->n_initializers; i++)
        visit(uses, graph->initializers[i]);
    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        capture_visit captures = {uses, node, visit};

        for (int i = 0; i < node->n_inputs; i++)
            visit(uses, node->inputs[i]);
        for (int i = 0; i < node->n_outputs; i++)
            visit(uses, node->outputs[i]);
        ot__node_visit_captures(node, visit_capture, &captures);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        visit(uses, graph->outputs[i]);
}

static void forget(ot__uses *uses, ot_value *value)
{
    (void)uses;
    if (value)
        value->index = -1;
}

static void count(ot__uses *uses, ot_value *value)
{
    if (value && value->index < 0)
        value->index = uses->n_values++;
}

static void enter(ot__uses *uses, ot_value *value)
{
    if (value)
        uses->values[value->index] = value;
}

typedef struct use_sink {
    ot__uses *uses;
    int *next; // NULL while counting
    ot_node *node;
    int i_input;
} use_sink;

static void add_use(void *context, ot_value *value)
{
    use_sink *sink = context;

    if (!value)
        return;
    if (!sink->next)
        sink->uses->first[value->index + 1]++;
    else
        sink->uses->use[sink->next[value->index]++] = (ot__use){sink->node, sink->i_input};
}

static void visit_uses(const ot_graph *graph, use_sink *sink)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        sink->node = graph->nodes[n];
        for (sink->i_input = 0; sink->i_input < sink->node->n_inputs; sink->i_input++)
            add_use(sink, sink->node->inputs[sink->i_input]);
        sink->i_input = -1;
        ot__node_visit_captures(sink->node, add_use, sink);
    }
}

static ot_status build(ot_graph *graph, ot__uses *uses)
{
    size_t n = (size_t)uses->n_values;
    use_sink sink = {.uses = uses};

    uses->values = ot__alloc_zero(n, sizeof(ot_value *));
    uses->first = ot__alloc_zero(n + 1, sizeof *uses->first);
    if (!uses->values || !uses->first)
        return OT_ERR_NO_MEMORY;
    visit_values(graph, uses, enter);
    visit_uses(graph, &sink);
    for (size_t v = 0; v < n; v++)
        uses->first[v + 1] += uses->first[v];
    uses->use = ot__alloc_zero((size_t)uses->first[n], sizeof *uses->use);
    sink.next = ot__alloc(n * sizeof *sink.next);
    if (!uses->use || !sink.next) {
        ot__free(sink.next);
        return OT_ERR_NO_MEMORY;
    }
    memcpy(sink.next, uses->first, n * sizeof *sink.next);
    visit_uses(graph, &sink);
    ot__free(sink.next);
    return OT_OK;
}

ot_status ot__uses_build(ot_graph *graph, ot__uses *uses)
{
    ot_status st;

    *uses = (ot__uses){0};
    OT_TRY(check_count(graph));
    for (int i = 0; i < graph->n_nodes; i++)
        graph->nodes[i]->index = i;
    visit_values(graph, uses, forget);
    visit_values(graph, uses, count);
    st = build(graph, uses);
    if (st != OT_OK)
        ot__uses_deinit(uses);
    return st;
}

void ot__uses_deinit(ot__uses *uses)
{
    ot__free(uses->use);
    ot__free(uses->first);
    ot__free(uses->values);
    *uses = (ot__uses){0};
}
