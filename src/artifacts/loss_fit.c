// SPDX-License-Identifier: Apache-2.0
// Scores that went through what their loss does itself.
#include <string.h>

#include "artifacts/forward.h"

// The node that computes the elements of `value`; NULL: none does.
static const ot_node *maker_of(const ot_value *value)
{
    const ot_node *node = value->producer;

    while (node && node->n_inputs > 0 && node->inputs[0] && ot__node_moves(node, 0))
        node = node->inputs[0]->producer;
    return node;
}

// What it takes instead, where that has the same shape.
static const char *remedy(ot__arena *arena, const ot_node *maker, const ot_value *scores)
{
    const ot_value *before = maker->n_inputs > 0 ? maker->inputs[0] : NULL;

    if (scores->producer != maker || !before)
        return ot__arena_printf(arena, "export the model without %s", maker->op_type);
    return ot__arena_printf(arena, "take '%s' as loss input, or export the model without %s",
                            before->name, maker->op_type);
}

static ot_status judge_term(ot__forward *forward, const ot_loss_options *term)
{
    const char *applied = ot__loss_applies(term->loss);
    const ot_graph *graph = forward->model->graph;
    ot__arena *arena = forward->model->arena;
    const ot_value *scores = ot__loss_input(graph, term);
    const ot_node *maker;
    const char *instead, *text;

    if (!applied || !scores)
        return OT_OK;
    maker = maker_of(scores);
    if (!maker || !ot__node_makes_probabilities(maker))
        return OT_OK;
    instead = remedy(arena, maker, scores);
    OT_TRY(ot__made(instead));
    const char *label = OT_LABEL(maker);
    text =
        ot__arena_printf(arena,
                         "%s takes '%s', which comes after %s, but expects scores: it applies %s "
                         "itself, and two of them train badly; %s",
                         ot__loss_name(term->loss), scores->name, label, applied, instead);
    return ot__forward_note(forward, OT_LOG_WARNING, text);
}

ot_status ot__losses_judge(ot__forward *forward, const ot_artifacts_options *options)
{
    for (int i = 0; i < options->n_losses; i++)
        OT_TRY(judge_term(forward, &options->losses[i]));
    return OT_OK;
}
