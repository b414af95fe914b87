// SPDX-License-Identifier: Apache-2.0
// Changing graphs: removing, renaming, pruning.
#include <string.h>

#include "graph/graph_internal.h"

// ---- subgraphs ----

bool ot__next_subgraph(ot__subgraphs *s)
{
    for (; s->i_attr < s->node->n_attrs; s->i_attr++, s->i = 0) {
        const ot_attr *attr = s->node->attrs[s->i_attr];

        if (s->i >= (attr->g ? 1 : attr->graphs ? attr->n : 0))
            continue;
        s->graph = attr->g ? attr->g : attr->graphs[s->i];
        s->i++;
        return true;
    }
    return false;
}

void ot__node_visit_captures(const ot_node *node, void (*visit)(void *context, ot_value *value),
                             void *context)
{
    for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);) {
        for (int n = 0; n < s.graph->n_nodes; n++) {
            for (int i = 0; i < s.graph->nodes[n]->n_inputs; i++)
                if (s.graph->nodes[n]->inputs[i])
                    visit(context, s.graph->nodes[n]->inputs[i]);
            ot__node_visit_captures(s.graph->nodes[n], visit, context);
        }
        for (int i = 0; i < s.graph->n_outputs; i++)
            visit(context, s.graph->outputs[i]);
    }
}

// ---- removing ----

void ot__node_detach(ot_node *node)
{
    node->graph = NULL;
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && node->outputs[i]->producer == node)
            node->outputs[i]->producer = NULL;
}

void ot__node_remove(ot_node *node)
{
    ot_graph *graph = node->graph;

    ot__node_detach(node);
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i])
            ot__graph_forget_value(graph, node->outputs[i]);
}

ot_status ot__node_move(ot_node *node, ot_graph *to)
{
    ot_graph *from = node->graph;

    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i]) {
            ot__graph_forget_value(from, node->outputs[i]);
            OT_TRY(ot__made(ot__graph_adopt_value(to, node->outputs[i])));
        }
    for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
        s.graph->parent = to;
    node->graph = to;
    return ot__made(ot__arena_push(to->model->arena, &to->nodes, &to->nodes_capacity, &to->n_nodes,
                                   &node, sizeof node));
}

void ot__graph_drop_detached(ot_graph *graph)
{
    int n_nodes = 0;

    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n]->graph == graph)
            graph->nodes[n_nodes++] = graph->nodes[n];
    graph->n_nodes = n_nodes;
}

void ot__graph_relist(ot_graph *graph)
{
    int n_inputs = 0, n_outputs = 0, n_initializers = 0;

    for (int i = 0; i < graph->n_inputs; i++)
        if (graph->inputs[i]->is_input)
            graph->inputs[n_inputs++] = graph->inputs[i];
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i]->is_output)
            graph->outputs[n_outputs++] = graph->outputs[i];
    for (int i = 0; i < graph->n_initializers; i++)
        if (graph->initializers[i]->is_initializer)
            graph->initializers[n_initializers++] = graph->initializers[i];
    graph->n_inputs = n_inputs;
    graph->n_outputs = n_outputs;
    graph->n_initializers = n_initializers;
}

void ot__graph_clear_outputs(ot_graph *graph)
{
    for (int i = 0; i < graph->n_outputs; i++)
        graph->outputs[i]->is_output = false;
    graph->n_outputs = 0;
}

bool ot__graph_rename_value(ot_graph *graph, ot_value *value, const char *base)
{
    const ot_value *named = ot__graph_new_value(graph, base);

    if (!named)
        return false;
    ot__graph_forget_value(graph, value);
    value->name = named->name;
    return ot__map_put(&graph->values, value->name, value); // its name is taken already
}

// ---- pruning ----

// The stack is our own: graphs can be deep.
typedef struct pruning {
    ot_graph *graph;
    ot__numbers numbers;
    bool *is_needed; // per value
    bool *is_taken;  // per node
    ot_node **stack;
    int n_stack;
} pruning;

static void take_uses(pruning *p, ot_node *node)
{
    bool *is_taken = &p->is_taken[ot__node_number(&p->numbers, node)];

    if (!*is_taken)
        p->stack[p->n_stack++] = node;
    *is_taken = true;
}

static void need(void *context, ot_value *value)
{
    pruning *p = context;
    ot_node *node = value ? value->producer : NULL;

    if (!value)
        return;
    p->is_needed[ot__value_number(&p->numbers, value)] = true;
    if (node && node->graph == p->graph)
        take_uses(p, node);
}

static void mark_needed(pruning *p, ot__keep_function keep)
{
    ot_graph *graph = p->graph;

    for (int i = 0; i < graph->n_outputs; i++)
        need(p, graph->outputs[i]);
    for (int n = 0; n < graph->n_nodes; n++)
        if (keep && !p->is_taken[n] && keep(graph->nodes[n]))
            take_uses(p, graph->nodes[n]);
    while (p->n_stack > 0) {
        const ot_node *node = p->stack[--p->n_stack];

        for (int i = 0; i < node->n_inputs; i++)
            need(p, node->inputs[i]);
        ot__node_visit_captures(node, need, p);
    }
}

static void drop_unneeded(pruning *p)
{
    ot_graph *graph = p->graph;
    int n_initializers = 0;

    for (int n = 0; n < graph->n_nodes; n++)
        if (!p->is_taken[n])
            ot__node_remove(graph->nodes[n]);
    ot__graph_drop_detached(graph);
    for (int i = 0; i < graph->n_initializers; i++) {
        ot_value *value = graph->initializers[i];

        // One that is an input as well is a default; without it the input would have to be given.
        if (p->is_needed[ot__value_number(&p->numbers, value)] || value->is_input) {
            graph->initializers[n_initializers++] = value;
            continue;
        }
        value->is_initializer = false;
        ot__graph_forget_value(graph, value);
    }
    graph->n_initializers = n_initializers;
}

ot_status ot__graph_prune(ot_graph *graph, ot__keep_function keep)
{
    pruning p = {.graph = graph};
    ot_status st = OT_ERR_NO_MEMORY;

    // Innermost first: what only a dropped inner node reads is not needed outside either.
    for (int n = 0; n < graph->n_nodes; n++)
        for (ot__subgraphs s = {.node = graph->nodes[n]}; ot__next_subgraph(&s);)
            OT_TRY(ot__graph_prune(s.graph, keep));
    OT_TRY(ot__numbers_build(graph, &p.numbers));
    p.stack = ot__alloc((size_t)graph->n_nodes * sizeof *p.stack);
    p.is_needed = ot__alloc_zero((size_t)p.numbers.n_values, sizeof *p.is_needed);
    p.is_taken = ot__alloc_zero((size_t)graph->n_nodes, sizeof *p.is_taken);
    if (p.stack && p.is_needed && p.is_taken) {
        mark_needed(&p, keep);
        drop_unneeded(&p);
        st = OT_OK;
    }
    ot__free(p.stack);
    ot__free(p.is_needed);
    ot__free(p.is_taken);
    ot__numbers_deinit(&p.numbers);
    return st;
}
