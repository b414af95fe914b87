// SPDX-License-Identifier: Apache-2.0
// Nodes that hand on an input unchanged: gone.
#include "passes/passes.h"

static bool is_captured(const ot__uses *uses, const ot_value *value)
{
    for (int u = ot__uses_first(uses, value); u < ot__uses_end(uses, value); u++)
        if (uses->use[u].i_input < 0)
            return true;
    return false;
}

static bool can_go(const ot__uses *uses, const ot_node *node)
{
    if (!ot__node_is_identity(node) || node->outputs[0]->is_output ||
        is_captured(uses, node->outputs[0]))
        return false;
    for (int i = 1; i < node->n_outputs; i++)
        if (node->outputs[i] &&
            (node->outputs[i]->is_output || ot__uses_count(uses, node->outputs[i]) > 0))
            return false;
    return true;
}

static void drop_outputs(ot_graph *graph, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i])
            continue;
        node->outputs[i]->producer = NULL;
        ot__graph_forget_value(graph, node->outputs[i]);
    }
}

static ot_status drop_identities(ot_graph *graph)
{
    ot__uses uses;
    ot_value **stands_for;
    int kept = 0;

    OT_TRY(ot__uses_build(graph, &uses));
    stands_for = ot__alloc_zero((size_t)uses.numbers.n_values, sizeof *stands_for);
    if (!stands_for) {
        ot__uses_deinit(&uses);
        return OT_ERR_NO_MEMORY;
    }
    for (int n = 0; n < graph->n_nodes; n++) { // in order, so that chains resolve as they come
        ot_node *node = graph->nodes[n];

        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] && stands_for[ot__value_number(&uses.numbers, node->inputs[i])])
                node->inputs[i] = stands_for[ot__value_number(&uses.numbers, node->inputs[i])];
        if (can_go(&uses, node)) {
            stands_for[ot__value_number(&uses.numbers, node->outputs[0])] = node->inputs[0];
            drop_outputs(graph, node);
        } else {
            graph->nodes[kept++] = node;
        }
    }
    graph->n_nodes = kept;
    ot__free(stands_for);
    ot__uses_deinit(&uses);
    return OT_OK;
}

ot_status ot__pass_simplify(ot_model *model)
{
    // A second walk for what only nodes that went had kept: a Dropout that drops nothing, whose
    // gradient was the reader of its mask. Not until nothing changes: each walk costs as much.
    OT_TRY(drop_identities(model->graph));
    OT_TRY(drop_identities(model->graph));
    return ot__pass_finished(model, "simplify");
}
