// SPDX-License-Identifier: Apache-2.0
// Who reads what.
#include <string.h>

#include "graph/graph_internal.h"

typedef struct use_sink {
    ot__uses *uses;
    int *next; // NULL while counting
    ot_node *node;
    int i_input;
} use_sink;

static void add_use(void *context, ot_value *value)
{
    use_sink *sink = context;
    int v;

    if (!value)
        return;
    v = ot__value_number(&sink->uses->numbers, value);
    if (!sink->next)
        sink->uses->first[v + 1]++;
    else
        sink->uses->use[sink->next[v]++] = (ot__use){sink->node, sink->i_input};
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

static ot_status build_uses(const ot_graph *graph, ot__uses *uses)
{
    use_sink sink = {.uses = uses};
    size_t n;

    OT_TRY(ot__numbers_build(graph, &uses->numbers));
    n = (size_t)uses->numbers.n_values;
    uses->first = ot__alloc_zero(n + 1, sizeof *uses->first);
    OT_TRY(ot__made(uses->first));
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

ot_status ot__uses_build(const ot_graph *graph, ot__uses *uses)
{
    ot_status st;

    *uses = (ot__uses){0};
    st = build_uses(graph, uses);
    if (st != OT_OK)
        ot__uses_deinit(uses);
    return st;
}

void ot__uses_deinit(ot__uses *uses)
{
    ot__numbers_deinit(&uses->numbers);
    ot__free(uses->use);
    ot__free(uses->first);
    *uses = (ot__uses){0};
}
