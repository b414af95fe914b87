// SPDX-License-Identifier: Apache-2.0
// The eval model: forward and loss, training mode off.
#include <string.h>

#include "artifacts/training_model.h"

enum { DROPOUT_TRAINING_INPUT = 2 };

static ot_status to_eval(ot_node *node)
{
    if (ot__is_batch_norm(node))
        return ot__batch_norm_to_inference(node);
    if (ot__is_dropout(node) && node->n_inputs > DROPOUT_TRAINING_INPUT)
        node->inputs[DROPOUT_TRAINING_INPUT] = NULL;
    return OT_OK;
}

ot_status ot__to_inference(ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        OT_TRY(to_eval(model->graph->nodes[n]));
    return OT_OK;
}

// ---- what the forward model gave and the loss does not need: exports may ask for it ----

typedef struct keeping {
    ot_graph *graph;
    ot__numbers numbers;
    bool *is_needed; // per value, for the outputs
    bool *is_made;   // per value, of constants and of inputs that are needed anyway
} keeping;

static void mark_values(const keeping *k, bool *marks, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        if (values[i] != NULL)
            marks[ot__value_number(&k->numbers, values[i])] = true;
}

static bool is_any_needed(const keeping *k, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL &&
            k->is_needed[ot__value_number(&k->numbers, node->outputs[i])])
            return true;
    return false;
}

static bool can_keep_making(const keeping *k, const ot_node *node)
{
    if (node->op == NULL || ot__op_is_foreign(node) || ot__op_writes_state(node))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && !k->is_made[ot__value_number(&k->numbers, node->inputs[i])])
            return false;
    return true;
}

static void mark_kept_origins(const keeping *k)
{
    const ot_graph *g = k->graph;

    mark_values(k, k->is_needed, g->outputs, g->n_outputs);
    for (int n = g->n_nodes - 1; n >= 0; n--)
        if (is_any_needed(k, g->nodes[n]))
            mark_values(k, k->is_needed, g->nodes[n]->inputs, g->nodes[n]->n_inputs);
    for (int v = 0; v < k->numbers.n_values; v++)
        k->is_made[v] = k->numbers.values[v]->is_input ? k->is_needed[v]
                                                       : k->numbers.values[v]->constant != NULL;
    for (int n = 0; n < g->n_nodes; n++)
        if (can_keep_making(k, g->nodes[n]))
            mark_values(k, k->is_made, g->nodes[n]->outputs, g->nodes[n]->n_outputs);
}

static ot_status mark_made(keeping *k, ot_model *model)
{
    OT_TRY(ot__numbers_build(k->graph, &k->numbers));
    k->is_needed = ot__arena_alloc(model->arena, (size_t)k->numbers.n_values + 1);
    k->is_made = ot__arena_alloc(model->arena, (size_t)k->numbers.n_values + 1);
    OT_TRY(ot__made(k->is_needed != NULL && k->is_made != NULL));
    mark_kept_origins(k);
    return OT_OK;
}

// They are outputs while the graph is pruned, and no others are asked of who runs it: what needs
// further inputs, or operators of others, goes.
static ot_status prune_keeping(ot_model *model, const ot__name_list *kept)
{
    keeping k = {.graph = model->graph};
    const int n_outputs = model->graph->n_outputs;
    ot_status st = mark_made(&k, model);

    for (int i = 0; i < kept->n && st == OT_OK; i++) {
        ot_value *value = ot__graph_find(model->graph, kept->names[i]);

        if (value != NULL && !value->is_output && value->producer != NULL &&
            k.is_made[ot__value_number(&k.numbers, value)])
            st = ot__made(ot__graph_add_output(model->graph, value));
    }
    ot__numbers_deinit(&k.numbers);
    OT_THEN(st, ot__pass_prune(model));
    for (int i = n_outputs; i < model->graph->n_outputs; i++)
        model->graph->outputs[i]->is_output = false;
    model->graph->n_outputs = n_outputs;
    return st;
}

ot_status ot__eval_model(const ot_model *model, const ot__name_list *kept, ot_model **out)
{
    ot_model *copy;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__model_clone(model, &copy));
    st = ot__graph_list_constants(copy->graph);
    OT_THEN(st, ot__to_inference(copy));
    OT_THEN(st, ot__pass_eval(copy));
    OT_THEN(st, kept == NULL ? ot__pass_prune(copy) : prune_keeping(copy, kept));
    if (st != OT_OK)
        ot__error_prefix(st, "eval model");
    return OT_HAND_OUT(st, out, copy, ot_model_destroy);
}
