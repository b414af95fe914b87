// SPDX-License-Identifier: Apache-2.0
// The order of a graph's nodes: the graph as ordering sees it, in entries instead of values.
#include <limits.h>

#include "exec/plan.h"

typedef struct described {
    ot__order_node *nodes;
    int *numbers; // what the nodes point into
    int n_numbers;
    int *made_in; // per entry: what the node at hand makes in its memory; -1: nothing
} described;

static int *here(const described *d)
{
    return d->numbers + d->n_numbers;
}

static void describe_reads(const ot__plan_builder *b, const ot_node *node, described *d)
{
    ot__order_node *o = &d->nodes[ot__node_number(&b->numbers, node)];

    o->reads = here(d);
    for (int i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] == NULL)
            continue;
        const ot__range range = ot__builder_range(b, node->inputs[i]);

        for (int k = range.first; k < range.first + range.count; k++) {
            const int root = b->plan->entries[k].root;

            // Reading a view keeps the memory alive; what is overwritten in place has edges of
            // its own.
            d->numbers[d->n_numbers++] = k;
            if (root != k && (!b->plan->entries[root].is_written || b->plan->entries[k].is_old))
                d->numbers[d->n_numbers++] = root;
        }
    }
    o->n_reads = (int)(here(d) - o->reads);
}

static void describe_makes(const ot__plan_builder *b, const ot_node *node, described *d)
{
    ot__order_node *o = &d->nodes[ot__node_number(&b->numbers, node)];

    o->makes = here(d);
    for (int i = 0; i < node->n_outputs; i++) {
        if (node->outputs[i] == NULL)
            continue;
        const ot__range range = ot__builder_range(b, node->outputs[i]);

        for (int k = range.first; k < range.first + range.count; k++)
            d->numbers[d->n_numbers++] = k;
    }
    o->n_makes = (int)(here(d) - o->makes);
}

static void describe_overwrites(const ot__plan_builder *b, const ot_node *node, described *d)
{
    ot__order_node *o = &d->nodes[ot__node_number(&b->numbers, node)];
    int *becomes;

    o->overwrites = here(d);
    for (int i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] == NULL || (ot__op_input_port(node->op, i)->flags & OT_PORT_STATE) == 0)
            continue;
        const ot__range range = ot__builder_range(b, node->inputs[i]);

        for (int k = range.first; k < range.first + range.count; k++)
            d->numbers[d->n_numbers++] = k;
    }
    o->n_overwrites = (int)(here(d) - o->overwrites);
    o->becomes = becomes = here(d);
    d->n_numbers += o->n_overwrites;
    for (int k = 0; k < o->n_makes; k++)
        d->made_in[b->plan->entries[o->makes[k]].root] = o->makes[k];
    for (int i = 0; i < o->n_overwrites; i++)
        becomes[i] = d->made_in[b->plan->entries[o->overwrites[i]].root];
    for (int k = 0; k < o->n_makes; k++)
        d->made_in[b->plan->entries[o->makes[k]].root] = -1;
}

static ot_status describe_graph(const ot__plan_builder *b, described *d)
{
    const ot_graph *g = b->graph;
    size_t n = 1;

    for (int i = 0; i < g->n_nodes; i++) {
        const ot_node *node = g->nodes[i];

        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NULL)
                n += 4 * (size_t)ot__builder_range(b, node->inputs[k]).count;
        for (int k = 0; k < node->n_outputs; k++)
            if (node->outputs[k] != NULL)
                n += (size_t)ot__builder_range(b, node->outputs[k]).count;
    }
    if (n > INT_MAX)
        return ot__error(OT_ERR_UNSUPPORTED, "the nodes read and write more than %d values",
                         INT_MAX);
    d->nodes = ot__arena_alloc(b->arena, ((size_t)g->n_nodes + 1) * sizeof *d->nodes);
    d->numbers = ot__arena_alloc(b->arena, n * sizeof *d->numbers);
    d->made_in = ot__arena_alloc(b->arena, ((size_t)b->plan->n_entries + 1) * sizeof *d->made_in);
    OT_TRY(ot__made(d->nodes != NULL && d->numbers != NULL && d->made_in != NULL));
    for (int e = 0; e < b->plan->n_entries; e++)
        d->made_in[e] = -1;
    for (int i = 0; i < g->n_nodes; i++) {
        describe_reads(b, g->nodes[i], d);
        describe_makes(b, g->nodes[i], d);
        describe_overwrites(b, g->nodes[i], d);
        d->nodes[i].is_ordered = (g->nodes[i]->op->flags & OT_OP_ORDERED) != 0;
        d->nodes[i].is_early = (g->nodes[i]->op->flags & OT_OP_START) != 0;
        d->nodes[i].is_late = (g->nodes[i]->op->flags & OT_OP_LATE) != 0;
    }
    return OT_OK;
}

ot_status ot__build_order(ot__plan_builder *b)
{
    const ot_graph *g = b->graph;
    const ot__plan *plan = b->plan;
    size_t *value_bytes = ot__arena_alloc(b->arena, (size_t)plan->n_entries * sizeof *value_bytes);
    bool *kept = ot__arena_alloc(b->arena, (size_t)plan->n_entries + 1);
    int *order = ot__arena_alloc(b->arena, ((size_t)g->n_nodes + 1) * sizeof *order);
    described d = {0};
    size_t peak;
    int stuck;

    b->order = ot__arena_alloc(b->arena, ((size_t)g->n_nodes + 1) * sizeof(ot_node *));
    OT_TRY(ot__made(value_bytes != NULL && kept != NULL && order != NULL && b->order != NULL));
    OT_TRY(describe_graph(b, &d));
    for (int e = 0; e < plan->n_entries; e++)
        if (plan->entries[e].source == OT_SOURCE_PLANNED && plan->entries[e].root == e)
            value_bytes[e] = plan->entries[e].n_bytes;
    for (int i = 0; i < g->n_outputs; i++)
        kept[plan->entries[ot__builder_range(b, g->outputs[i]).first].root] = true;

    const ot__order_problem problem = {d.nodes, g->n_nodes, value_bytes, kept, plan->n_entries};
    const ot_status st = ot__order(&problem, order, &peak, &stuck);

    if (st == OT_ERR_INVALID)
        return ot__error(OT_ERR_INVALID,
                         "%s: reads the old value of what another node must overwrite first",
                         OT_LABEL(g->nodes[stuck]));
    for (int i = 0; st == OT_OK && i < g->n_nodes; i++)
        b->order[i] = g->nodes[order[i]];
    return st;
}
