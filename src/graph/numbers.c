// SPDX-License-Identifier: Apache-2.0
// Numbers of values and nodes. Nothing but this file writes ot_value.number and ot_node.number.
#include <limits.h>

#include "graph/graph_internal.h"

enum { FIRST_CAPACITY = 64 };

ot_status ot__numbers_add(ot__numbers *numbers, ot_value *value)
{
    if (ot__has_number(numbers, value))
        return OT_OK;
    if ((size_t)numbers->n_values == numbers->capacity) {
        const size_t capacity = OT_MAX(2 * numbers->capacity, (size_t)FIRST_CAPACITY);
        ot_value **grown = ot__realloc(numbers->values, capacity * sizeof(ot_value *));

        OT_TRY(ot__made(grown));
        numbers->values = grown;
        numbers->capacity = capacity;
    }
    value->number = numbers->n_values;
    numbers->values[numbers->n_values++] = value;
    return OT_OK;
}

static void count_mention(void *context, ot_value *value)
{
    (void)value;
    ++*(int64_t *)context;
}

// Values and uses are numbered by int, and there are no more of either than mentions.
static ot_status check_number_count(const ot_graph *graph)
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

typedef struct mentions {
    ot__numbers *numbers;
    ot_status status;
} mentions;

static void add_mention(void *context, ot_value *value)
{
    mentions *m = context;

    if (value && m->status == OT_OK)
        m->status = ot__numbers_add(m->numbers, value);
}

static void add_list(mentions *m, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        add_mention(m, values[i]);
}

ot_status ot__numbers_set_nodes(ot__numbers *numbers, const ot_graph *graph)
{
    ot_node **nodes =
        ot__realloc(numbers->nodes, OT_MAX((size_t)graph->n_nodes, (size_t)1) * sizeof(ot_node *));

    OT_TRY(ot__made(nodes));
    numbers->nodes = nodes;
    numbers->n_nodes = graph->n_nodes;
    for (int n = 0; n < graph->n_nodes; n++) {
        nodes[n] = graph->nodes[n];
        nodes[n]->number = n;
    }
    return OT_OK;
}

static ot_status number_all(const ot_graph *graph, ot__numbers *numbers)
{
    mentions m = {numbers, OT_OK};

    OT_TRY(ot__numbers_set_nodes(numbers, graph));
    add_list(&m, graph->inputs, graph->n_inputs);
    add_list(&m, graph->initializers, graph->n_initializers);
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        add_list(&m, node->inputs, node->n_inputs);
        add_list(&m, node->outputs, node->n_outputs);
        ot__node_visit_captures(node, add_mention, &m);
    }
    add_list(&m, graph->outputs, graph->n_outputs);
    return m.status;
}

ot_status ot__numbers_build(const ot_graph *graph, ot__numbers *numbers)
{
    ot_status st;

    *numbers = (ot__numbers){0};
    OT_TRY(check_number_count(graph));
    st = number_all(graph, numbers);
    if (st != OT_OK)
        ot__numbers_deinit(numbers);
    return st;
}

void ot__numbers_deinit(ot__numbers *numbers)
{
    ot__free(numbers->values);
    ot__free(numbers->nodes);
    *numbers = (ot__numbers){0};
}
