// SPDX-License-Identifier: Apache-2.0
// Nodes written in other operators: in those that ONNX has, or in those that train.
#include <string.h>

#include "passes/passes.h"

static bool has_outputs(const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i])
            return true;
    return false;
}

// Nodes that have been expanded are left without outputs.
static void drop_expanded(ot_graph *graph)
{
    int kept = 0;

    for (int n = 0; n < graph->n_nodes; n++)
        if (has_outputs(graph->nodes[n]))
            graph->nodes[kept++] = graph->nodes[n];
    graph->n_nodes = kept;
}

static void drop_unused_imports(ot_model *model)
{
    int kept = 0;

    for (int i = 0; i < model->n_opsets; i++) {
        const char *domain = model->opsets[i].domain;
        bool is_used = domain[0] == '\0';

        for (int n = 0; !is_used && n < model->graph->n_nodes; n++)
            is_used = strcmp(model->graph->nodes[n]->domain, domain) == 0;
        if (is_used)
            model->opsets[kept++] = model->opsets[i];
    }
    model->n_opsets = kept;
}

typedef void (*rewriting)(ot_grad *g);

static rewriting expansion(const ot_op_def *op)
{
    return op->expand;
}

static rewriting expand_training_form(const ot_op_def *op)
{
    return op->train;
}

static rewriting eval_form(const ot_op_def *op)
{
    return op->eval;
}

// What a rewriting emits stands behind, and has its turn too.
static ot_status expand_rewrite(ot_graph *graph, rewriting (*of)(const ot_op_def *op))
{
    for (int n = 0; n < graph->n_nodes; n++)
        OT_TRY(ot__rewrite_node(graph->nodes[n], of(graph->nodes[n]->op)));
    drop_expanded(graph);
    return ot__graph_sort(graph);
}

ot_status ot__pass_expand(ot_model *model)
{
    const int64_t opset = ot__model_opset(model, "");

    OT_TRY(expand_rewrite(model->graph, expansion));
    if (ot__model_opset(model, "") != opset)
        OT_TRY(ot__pass_check(model));
    OT_TRY(ot__pass_prune(model));
    drop_unused_imports(model);
    return ot__pass_finished(model, "expand");
}

bool ot__pass_has_training_form(const ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        if (model->graph->nodes[n]->op->train)
            return true;
    return false;
}

ot_status ot__pass_train(ot_model *model)
{
    OT_TRY(expand_rewrite(model->graph, expand_training_form));
    return ot__pass_finished(model, "train");
}

ot_status ot__pass_eval(ot_model *model)
{
    OT_TRY(expand_rewrite(model->graph, eval_form));
    return ot__pass_finished(model, "eval");
}
