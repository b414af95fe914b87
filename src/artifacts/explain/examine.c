// SPDX-License-Identifier: Apache-2.0
// Roles of initializers when the graph cannot be prepared, because operators are missing or a loss
// does not fit: what the structure alone tells.
#include <string.h>

#include "artifacts/parameters.h"

// How a value reaches the loss, worst first.
typedef enum standing { NOT_AT_ALL, STOPPED, BLOCKED, REACHES } standing;

typedef struct walk {
    const ot_graph *graph;
    ot__numbers numbers;
    standing *standing;      // per value
    const ot_node **culprit; // per value: what stops or blocks it
} walk;

static const ot_op_def *find_op(const ot_graph *graph, const ot_node *node)
{
    return ot__op_find(node->domain, node->op_type, ot__model_opset(graph->model, node->domain));
}

static int walk_number(const walk *w, const ot_value *value)
{
    return ot__value_number(&w->numbers, value);
}

static void raise_to(walk *w, const ot_value *value, standing to, const ot_node *culprit)
{
    if (to <= w->standing[walk_number(w, value)])
        return;
    w->standing[walk_number(w, value)] = to;
    w->culprit[walk_number(w, value)] = culprit;
}

static void examine_input(walk *w, const ot_node *node, const ot_op_def *op, int i,
                          const ot_value *best)
{
    const standing out = w->standing[walk_number(w, best)];
    const ot_node *behind = w->culprit[walk_number(w, best)];
    const ot_port *port = op ? ot__op_input_port(op, i) : NULL;

    if (!op)
        raise_to(w, node->inputs[i], out == STOPPED ? STOPPED : BLOCKED,
                 out == STOPPED ? behind : node);
    else if ((op->flags & OT_OP_NO_GRAD) != 0 || !port ||
             (port->flags & (OT_PORT_NO_GRAD | OT_PORT_STATE)) != 0)
        raise_to(w, node->inputs[i], STOPPED, node);
    else if (!ot__op_is_differentiable(op))
        raise_to(w, node->inputs[i], out == STOPPED ? STOPPED : BLOCKED,
                 out == STOPPED ? behind : node);
    else
        raise_to(w, node->inputs[i], out, behind);
}

static void examine_node(walk *w, const ot_node *node)
{
    const ot_op_def *op = find_op(w->graph, node);
    const ot_value *best = NULL;

    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && (!best || w->standing[walk_number(w, node->outputs[i])] >
                                              w->standing[walk_number(w, best)]))
            best = node->outputs[i];
    if (!best || w->standing[walk_number(w, best)] == NOT_AT_ALL)
        return;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            examine_input(w, node, op, i, best);
}

// The values that losses take; of a custom one all outputs, which it may bind.
static void mark_targets(walk *w, const ot_artifacts_options *options)
{
    const ot_graph *graph = w->graph;
    bool all = false;

    for (int i = 0; i < options->n_losses; i++) {
        const char *input = options->losses[i].input;
        const ot_value *value = input                  ? ot__graph_find(graph, input)
                                : graph->n_outputs > 0 ? graph->outputs[0]
                                                       : NULL;
        all = all || options->losses[i].loss == OT_LOSS_CUSTOM;
        if (value && ot__has_number(&w->numbers, value))
            w->standing[walk_number(w, value)] = REACHES;
    }
    for (int i = 0; i < graph->n_outputs && (all || (options->n_losses == 0 && i == 0)); i++)
        w->standing[walk_number(w, graph->outputs[i])] = REACHES;
}

static const char *reason_of(const walk *w, const ot_value *value)
{
    ot__arena *arena = w->graph->model->arena;
    const ot_node *culprit = w->culprit[walk_number(w, value)];

    switch (w->standing[walk_number(w, value)]) {
    case NOT_AT_ALL:
        return "does not reach the loss";
    case STOPPED:
        return ot__arena_printf(arena, "only through inputs of %s that pass on no gradient",
                                OT_LABEL(culprit));
    case BLOCKED:
        return ot__arena_printf(
            arena, "reaches the loss only through %s, which %s", OT_LABEL(culprit),
            find_op(w->graph, culprit) ? "has no gradient" : "is not supported");
    case REACHES:
        break;
    }
    return "reaches the loss";
}

static ot_status judge_all(const walk *w, ot__candidates *c, const ot__selection *selection)
{
    for (int i = 0; i < c->n; i++) {
        ot__candidate *item = &c->items[i];
        const standing found = w->standing[walk_number(w, item->value)];

        item->reason = reason_of(w, item->value);
        item->role = found == REACHES ? OT_ROLE_TRAINABLE : OT_ROLE_CONSTANT;
        item->is_blocked = found == BLOCKED;
        OT_TRY(ot__made(item->reason));
        OT_TRY(ot__candidate_judge_structure(c, item, selection));
    }
    return OT_OK;
}

ot_status ot__candidates_examine(ot__candidates *c, const ot_artifacts_options *options)
{
    walk w = {.graph = c->graph};
    ot__selection selection;
    ot_status st = ot__selection_init(&selection, options);
    size_t n = 0;

    if (st == OT_OK && !options->train_buffers)
        st = ot__candidates_hold(c);
    OT_THEN(st, ot__candidates_find_places(c));
    if (st == OT_OK) {
        st = ot__numbers_build(c->graph, &w.numbers);
        n = (size_t)w.numbers.n_values;
    }
    if (st == OT_OK) {
        w.standing = ot__alloc_zero(n + 1, sizeof *w.standing);
        w.culprit = ot__alloc_zero(n + 1, sizeof(const ot_node *));
        st = ot__made(w.standing && w.culprit);
    }
    if (st == OT_OK) {
        mark_targets(&w, options);
        for (int k = c->graph->n_nodes - 1; k >= 0; k--)
            examine_node(&w, c->graph->nodes[k]);
        st = judge_all(&w, c, &selection);
    }
    ot__selection_deinit(&selection);
    ot__free(w.standing);
    ot__free(w.culprit);
    ot__numbers_deinit(&w.numbers);
    return st;
}
