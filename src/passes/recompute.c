// SPDX-License-Identifier: Apache-2.0
// Which nodes are forward, where those that are made again stand, and writing them.
#include "passes/recompute.h"

#include <string.h>

// ---- forward and backward ----

typedef struct needs {
    const ot__numbers *numbers;
    bool *is_needed; // per value
} needs;

static void need_value(void *context, ot_value *value)
{
    const needs *n = context;

    if (value != NULL)
        n->is_needed[ot__value_number(n->numbers, value)] = true;
}

static bool makes_needed(const needs *n, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL &&
            n->is_needed[ot__value_number(n->numbers, node->outputs[i])])
            return true;
    return false;
}

ot_status ot__find_forward(const ot_graph *graph, const ot__numbers *numbers, const int *outputs,
                           int n_outputs, bool *marks)
{
    needs n = {numbers, ot__alloc_zero((size_t)numbers->n_values + 1, sizeof(bool))};

    OT_TRY(ot__made(n.is_needed != NULL));
    for (int i = 0; i < n_outputs; i++)
        need_value(&n, graph->outputs[outputs[i]]);
    for (int k = graph->n_nodes - 1; k >= 0; k--) {
        ot_node *node = graph->nodes[k];

        marks[k] = makes_needed(&n, node);
        if (!marks[k])
            continue;
        for (int i = 0; i < node->n_inputs; i++)
            need_value(&n, node->inputs[i]);
        ot__node_visit_captures(node, need_value, &n);
    }
    ot__free(n.is_needed);
    return OT_OK;
}

// ---- the order ----

typedef struct arrangement {
    const ot__uses *uses;
    const bool *is_forward;
    int *at;              // per backward node: the node that it stands with
    int *early, *late;    // per node: the first of a list of nodes right before and right behind it
    int *next;            // per node, in such a list; -1: the last
    int n_nodes, n_first; // nodes up to the last forward one
} arrangement;

static int first_reader(const arrangement *r, const ot_node *node)
{
    int first = r->n_nodes;

    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        for (int u = y == NULL ? 0 : ot__uses_first(r->uses, y);
             y != NULL && u < ot__uses_end(r->uses, y); u++)
            first = OT_MIN(first, r->at[ot__node_number(&r->uses->numbers, r->uses->use[u].node)]);
    }
    return first;
}

static int last_maker(const arrangement *r, const ot_node *node)
{
    int last = -1;

    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->producer != NULL) {
            const int n = ot__node_number(&r->uses->numbers, node->inputs[i]->producer);

            if (!r->is_forward[n])
                last = OT_MAX(last, r->at[n]);
        }
    return last;
}

// Backward nodes that stand among forward ones, as the views do that a product's gradient reads,
// go before their first reader; what accumulates goes behind what it adds, as it is run.
static void arrange_backward(arrangement *r, ot_node *const *nodes)
{
    for (int n = r->n_nodes - 1; n >= 0; n--) {
        r->at[n] = n;
        r->early[n] = r->late[n] = r->next[n] = -1;
    }
    for (int n = r->n_first - 1; n >= 0; n--)
        if (!r->is_forward[n] && (nodes[n]->op->flags & OT_OP_ACCUMULATE) == 0 &&
            (r->at[n] = first_reader(r, nodes[n])) < r->n_nodes) {
            r->next[n] = r->early[r->at[n]];
            r->early[r->at[n]] = n;
        }
    for (int n = r->n_nodes - 1; n >= 0; n--) {
        const int maker = (nodes[n]->op->flags & OT_OP_ACCUMULATE) == 0 || r->is_forward[n]
                              ? -1
                              : last_maker(r, nodes[n]);

        if (maker < 0 || maker == n)
            continue;
        r->at[n] = maker;
        r->next[n] = r->late[maker];
        r->late[maker] = n;
    }
}

static int put_list(ot_node *const *from, const int *next, int n, ot_node **to, int n_to)
{
    for (; n >= 0; n = next[n])
        to[n_to++] = from[n];
    return n_to;
}

static ot_status put_in_order(ot__again *a, const bool *is_forward)
{
    const size_t n = (size_t)a->n_nodes + 1;
    arrangement r = {.uses = &a->uses, .is_forward = is_forward, .n_nodes = a->n_nodes};
    ot_node **nodes = ot__arena_alloc(a->arena, n * sizeof *nodes);
    ot_node *const *from = a->graph->nodes;
    int k = 0;

    r.at = ot__arena_alloc(a->arena, n * sizeof *r.at);
    r.early = ot__arena_alloc(a->arena, n * sizeof *r.early);
    r.late = ot__arena_alloc(a->arena, n * sizeof *r.late);
    r.next = ot__arena_alloc(a->arena, n * sizeof *r.next);
    OT_TRY(ot__made(nodes != NULL && r.at != NULL && r.early != NULL && r.late != NULL &&
                    r.next != NULL));
    for (int i = 0; i < a->n_nodes; i++)
        if (is_forward[i]) {
            nodes[k++] = from[i];
            r.n_first = i + 1;
        }
    a->n_forward = k;
    arrange_backward(&r, from);
    for (int i = 0; i < a->n_nodes; i++) {
        if (is_forward[i] || r.at[i] != i)
            continue;
        k = put_list(from, r.next, r.early[i], nodes, k);
        nodes[k++] = from[i];
        k = put_list(from, r.next, r.late[i], nodes, k);
    }
    for (int i = 0; i < a->n_nodes; i++) // nobody reads them
        if (!is_forward[i] && r.at[i] == a->n_nodes)
            nodes[k++] = from[i];
    assert(k == a->n_nodes);
    memcpy(a->graph->nodes, nodes, (size_t)k * sizeof *nodes);
    return OT_OK;
}

// ---- what can be made again ----

static bool is_written_port(const ot_node *node, int i)
{
    return (ot__op_input_port(node->op, i)->flags & OT_PORT_STATE) != 0;
}

// What a node writes into is not the same later; nor are views of it.
static void mark_written_values(const ot__again *a, bool *is_written)
{
    for (int n = 0; n < a->n_nodes; n++) {
        const ot_node *node = a->graph->nodes[n];

        for (int i = 0; i < node->n_inputs; i++)
            for (const ot_value *v = is_written_port(node, i) ? node->inputs[i] : NULL; v != NULL;
                 v = v->producer != NULL && (v->producer->op->flags & OT_OP_VIEW) != 0
                         ? v->producer->inputs[0]
                         : NULL)
                is_written[ot__value_number(&a->uses.numbers, v)] = true;
    }
}

static bool reads_written(const ot__again *a, const ot_node *node, const bool *is_written)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL &&
            is_written[ot__value_number(&a->uses.numbers, node->inputs[i])])
            return true;
    return false;
}

static bool is_read_by_subgraph(const ot__again *a, const ot_value *value)
{
    for (int u = ot__uses_first(&a->uses, value); u < ot__uses_end(&a->uses, value); u++)
        if (a->uses.use[u].i_input < 0)
            return true;
    return false;
}

// Tensors that the graph does not hand out and no subgraph reads by their names.
static bool makes_values(const ot__again *a, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        if (y != NULL && (y->kind != OT_VALUE_TENSOR || y->is_output || is_read_by_subgraph(a, y)))
            return false;
    }
    return !ot__next_subgraph(&(ot__subgraphs){.node = node});
}

static bool is_a_copy_the_same(const ot__again *a, const ot_node *node, const bool *is_written)
{
    if ((node->op->flags & OT_OP_RANDOM) != 0 || reads_written(a, node, is_written))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && is_written_port(node, i))
            return false;
    return true;
}

bool ot__reads_graph_input(const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->producer == NULL &&
            node->inputs[i]->constant == NULL)
            return true;
    return false;
}

// The nodes that callbacks make stay out of the list; what is not used of them loses its name in
// the end.
static ot_status find_possible(ot__again *a)
{
    bool *is_written = ot__arena_alloc(a->arena, (size_t)a->uses.numbers.n_values + 1);

    OT_TRY(ot__made(is_written != NULL));
    mark_written_values(a, is_written);
    for (int n = 0; n < a->n_forward; n++) {
        ot_node *node = a->graph->nodes[n];
        ot_value *y;

        if (!makes_values(a, node) || (a->spares_readers && ot__reads_graph_input(node)))
            continue;
        a->is_copy[n] = is_a_copy_the_same(a, node, is_written);
        if (!a->is_copy[n] && node->outputs[0] != NULL) {
            OT_TRY(ot__op_recompute(node, &y));
            a->made[n] = y == NULL ? NULL : y->producer;
            a->graph->n_nodes = a->n_nodes;
        }
        a->can[n] = a->is_copy[n] || a->made[n] != NULL;
    }
    return OT_OK;
}

static ot_status again_alloc(ot__again *a)
{
    const size_t n = (size_t)a->n_nodes + 1;

    a->made = ot__arena_alloc(a->arena, n * sizeof(ot_node *));
    a->can = ot__arena_alloc(a->arena, n);
    a->is_copy = ot__arena_alloc(a->arena, n);
    a->is_chosen = ot__arena_alloc(a->arena, n);
    a->place = ot__arena_alloc(a->arena, n * sizeof *a->place);
    return ot__made(a->made != NULL && a->can != NULL && a->is_copy != NULL &&
                    a->is_chosen != NULL && a->place != NULL);
}

ot_status ot__again_start(ot__again *a, ot_graph *graph, const int *outputs, int n_outputs,
                          bool spares_readers)
{
    bool *is_forward;

    *a = (ot__again){.graph = graph, .n_nodes = graph->n_nodes, .spares_readers = spares_readers};
    a->arena = ot__arena_create();
    OT_TRY(ot__made(a->arena != NULL));
    is_forward = ot__arena_alloc(a->arena, (size_t)a->n_nodes + 1);
    OT_TRY(ot__made(is_forward != NULL));
    OT_TRY(again_alloc(a));
    OT_TRY(ot__uses_build(graph, &a->uses));
    OT_TRY(ot__find_forward(graph, &a->uses.numbers, outputs, n_outputs, is_forward));
    OT_TRY(put_in_order(a, is_forward));
    ot__uses_deinit(&a->uses);
    OT_TRY(ot__uses_build(graph, &a->uses));
    return find_possible(a);
}

// ---- where it stands ----

void ot__again_find_places(ot__again *a)
{
    for (int n = a->n_forward - 1; n >= 0; n--) {
        const ot_node *node = a->graph->nodes[n];

        a->place[n] = a->n_nodes;
        for (int i = 0; a->is_chosen[n] && i < node->n_outputs; i++) {
            const ot_value *y = node->outputs[i];

            if (y == NULL || !ot__again_gives(a, n, i))
                continue;
            for (int u = ot__uses_first(&a->uses, y); u < ot__uses_end(&a->uses, y); u++) {
                const int reader = ot__node_number(&a->uses.numbers, a->uses.use[u].node);

                a->place[n] =
                    OT_MIN(a->place[n], reader < a->n_forward ? a->place[reader] : reader);
            }
        }
    }
}

// ---- writing ----

// The value that the backward pass has in the place of `value`.
static ot_value *given_again(const ot__again *a, ot_value *value)
{
    int n;

    if (value == NULL || value->producer == NULL || !ot__has_number(&a->uses.numbers, value))
        return value;
    n = ot__node_number(&a->uses.numbers, value->producer);
    if (n >= a->n_forward || !a->is_chosen[n] || a->place[n] == a->n_nodes ||
        !ot__again_gives(a, n, value->i_producer_output))
        return value;
    return a->made[n]->outputs[value->i_producer_output];
}

static void read_again(const ot__again *a, ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        node->inputs[i] = given_again(a, node->inputs[i]);
}

static ot_status copy_again(ot__again *a, const ot_node *node, ot_node **copy)
{
    ot__builder b = {.graph = a->graph};
    ot_value **y = ot__arena_alloc(a->arena, ((size_t)node->n_outputs + 1) * sizeof(ot_value *));

    OT_TRY(ot__made(y != NULL));
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL) {
            y[i] = ot__build_value(&b, ot__build_name(&b, "%s_recompute", node->outputs[i]->name));
            if (y[i] != NULL)
                ot__value_set(y[i], node->outputs[i]->dtype,
                              node->outputs[i]->has_shape ? &node->outputs[i]->shape : NULL);
        }
    *copy = ot__op_build(&b, node->domain, node->op_type,
                         ot__build_name(&b, "%s_recompute", node->name), node->inputs,
                         node->n_inputs, y, node->n_outputs);
    if (*copy != NULL && ot__build_made(&b, ot__node_copy_attrs(*copy, node)))
        (*copy)->op = node->op;
    a->graph->n_nodes = a->n_nodes;
    return b.status;
}

// Each goes before the first node that reads what it makes.
static ot_status list_nodes(ot__again *a, int n_again)
{
    ot_graph *g = a->graph;
    const size_t n = (size_t)a->n_nodes + (size_t)n_again + 1;
    ot_node **nodes = ot__arena_alloc(g->model->arena, n * sizeof *nodes);
    int *first = ot__arena_alloc(a->arena, ((size_t)a->n_nodes + 1) * sizeof *first);
    int *next = ot__arena_alloc(a->arena, ((size_t)a->n_forward + 1) * sizeof *next);
    int k = 0;

    OT_TRY(ot__made(nodes != NULL && first != NULL && next != NULL));
    for (int i = 0; i < a->n_nodes; i++)
        first[i] = -1;
    for (int i = a->n_forward - 1; i >= 0; i--)
        if (ot__again_has_place(a, i)) {
            next[i] = first[a->place[i]];
            first[a->place[i]] = i;
        }
    for (int i = 0; i < a->n_nodes; i++) {
        for (int c = first[i]; c >= 0; c = next[c])
            nodes[k++] = a->made[c];
        nodes[k++] = g->nodes[i];
    }
    g->nodes = nodes;
    g->n_nodes = k;
    g->nodes_capacity = k;
    return OT_OK;
}

ot_status ot__again_write(ot__again *a)
{
    int n_again = 0;

    ot__again_find_places(a);
    for (int n = 0; n < a->n_forward; n++) {
        if (ot__again_has_place(a, n)) {
            n_again++;
            if (a->is_copy[n])
                OT_TRY(copy_again(a, a->graph->nodes[n], &a->made[n]));
        } else if (a->made[n] != NULL) {
            ot__map_remove(&a->graph->values, a->made[n]->outputs[0]->name);
        }
    }
    if (n_again == 0)
        return OT_OK;
    for (int n = 0; n < a->n_forward; n++)
        if (ot__again_has_place(a, n))
            read_again(a, a->made[n]);
    for (int n = a->n_forward; n < a->n_nodes; n++)
        read_again(a, a->graph->nodes[n]);
    return list_nodes(a, n_again);
}

void ot__again_deinit(ot__again *a)
{
    ot__uses_deinit(&a->uses);
    ot__arena_destroy(a->arena);
    *a = (ot__again){0};
}
