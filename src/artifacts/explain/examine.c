// SPDX-License-Identifier: Apache-2.0
// Roles of initializers when the graph cannot be prepared, because operators are missing or a loss
// does not fit: what the structure alone tells.
#include <string.h>

#include "artifacts/parameters.h"

// How a value reaches the loss, worst first.
typedef enum standing { NOT_AT_ALL, STOPPED, BLOCKED, REACHES } standing;

typedef struct reaching {
    standing standing;
    const ot_node *culprit; // what stops or blocks it
} reaching;

typedef struct walk {
    const ot_graph *graph;
    ot__numbers numbers;
    reaching *reaching; // per value
} walk;

static const ot_op_def *find_op(const ot_graph *graph, const ot_node *node)
{
    return ot__op_find(node->domain, node->op_type, ot__model_opset(graph->model, node->domain));
}

static reaching *reaching_of(const walk *w, const ot_value *value)
{
    return &w->reaching[ot__value_number(&w->numbers, value)];
}

// `out`: how the best of the node's outputs does.
static void examine_input(const walk *w, const ot_node *node, const ot_op_def *op, int i,
                          const reaching *out)
{
    const ot_port *port = op ? ot__op_input_port(op, i) : NULL;
    reaching *in = reaching_of(w, node->inputs[i]), to = *out;

    if (op && ((op->flags & OT_OP_NO_GRAD) != 0 || !port ||
               (port->flags & (OT_PORT_NO_GRAD | OT_PORT_STATE | OT_PORT_STATISTIC)) != 0))
        to = (reaching){STOPPED, node};
    else if ((!op || !(ot__op_is_differentiable(op) || ot__op_is_composed(op))) &&
             out->standing != STOPPED)
        to = (reaching){BLOCKED, node};
    if (to.standing > in->standing)
        *in = to;
}

static void examine_node(walk *w, const ot_node *node)
{
    const ot_op_def *op = find_op(w->graph, node);
    reaching best = {NOT_AT_ALL, NULL};

    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && reaching_of(w, node->outputs[i])->standing > best.standing)
            best = *reaching_of(w, node->outputs[i]);
    if (best.standing == NOT_AT_ALL)
        return;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            examine_input(w, node, op, i, &best);
}

// The values that losses take; of a custom one all outputs, which it may bind.
static void mark_targets(walk *w, const ot_artifacts_options *options)
{
    const ot_graph *graph = w->graph;
    bool all = false;

    for (int i = 0; i < options->n_losses; i++) {
        const ot_value *value = ot__loss_input(graph, &options->losses[i]);

        all = all || options->losses[i].loss == OT_LOSS_CUSTOM;
        if (value && ot__has_number(&w->numbers, value))
            reaching_of(w, value)->standing = REACHES;
    }
    for (int i = 0; i < graph->n_outputs && (all || (options->n_losses == 0 && i == 0)); i++)
        reaching_of(w, graph->outputs[i])->standing = REACHES;
}

static const char *reason_of(const walk *w, const ot_value *value)
{
    ot__arena *arena = w->graph->model->arena;
    const ot_node *culprit = reaching_of(w, value)->culprit;

    switch (reaching_of(w, value)->standing) {
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
        const standing found = reaching_of(w, item->value)->standing;

        item->reason = reason_of(w, item->value);
        item->role = found == REACHES ? OT_ROLE_TRAINABLE : OT_ROLE_CONSTANT;
        item->is_blocked = found == BLOCKED;
        OT_TRY(ot__made(item->reason));
        OT_TRY(ot__candidate_judge_structure(c, item, selection));
    }
    return OT_OK;
}

static ot_status walk_back(walk *w, ot__candidates *c, const ot__selection *selection)
{
    if (!selection->options->train_buffers)
        OT_TRY(ot__candidates_hold(c));
    OT_TRY(ot__candidates_find_places(c));
    OT_TRY(ot__numbers_build(c->graph, &w->numbers));
    w->reaching = ot__alloc_zero((size_t)w->numbers.n_values + 1, sizeof *w->reaching);
    OT_TRY(ot__made(w->reaching));
    mark_targets(w, selection->options);
    for (int k = c->graph->n_nodes - 1; k >= 0; k--)
        examine_node(w, c->graph->nodes[k]);
    return judge_all(w, c, selection);
}

ot_status ot__candidates_examine(ot__candidates *c, const ot_artifacts_options *options)
{
    walk w = {.graph = c->graph};
    ot__selection selection;
    ot_status st = ot__selection_init(&selection, options);

    OT_THEN(st, walk_back(&w, c, &selection));
    ot__selection_deinit(&selection);
    ot__free(w.reaching);
    ot__numbers_deinit(&w.numbers);
    return st;
}
