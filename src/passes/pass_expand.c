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

ot_status ot__pass_expand(ot_model *model)
{
    ot_graph *graph = model->graph;
    const int64_t opset = ot__model_opset(model, "");

    // What an expansion emits stands behind, and has its turn too.
    for (int n = 0; n < graph->n_nodes; n++)
        OT_TRY(ot__rewrite_node(graph->nodes[n], graph->nodes[n]->op->expand));
    drop_expanded(graph);
    OT_TRY(ot__graph_sort(graph));
    if (ot__model_opset(model, "") != opset)
        OT_TRY(ot__pass_check(model));
    OT_TRY(ot__pass_prune(model));
    drop_unused_imports(model);
    return ot__pass_finished(model, "expand");
}

// ---- before gradients are built ----

ot_status ot__pass_train(ot_model *model)
{
    ot_graph *graph = model->graph;
    const int n_nodes = graph->n_nodes; // what they become stands behind

    for (int n = 0; n < n_nodes; n++)
        OT_TRY(ot__rewrite_node(graph->nodes[n], graph->nodes[n]->op->train));
    drop_expanded(graph);
    OT_TRY(ot__graph_sort(graph));
    return ot__pass_finished(model, "train");
}
