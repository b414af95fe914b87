// SPDX-License-Identifier: Apache-2.0
// Nodes written in other operators: in those that ONNX has, or in those that train.
#include <string.h>

#include "onnxtrain/gradients.h"
#include "passes/branch.h"

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
    for (int n = 0; n < graph->n_nodes; n++)
        if (!has_outputs(graph->nodes[n]))
            ot__node_detach(graph->nodes[n]);
    ot__graph_drop_detached(graph);
}

void ot__pass_drop_imports(ot_model *model, const char *of)
{
    int kept = 0;

    for (int i = 0; i < model->n_opsets; i++) {
        const char *domain = model->opsets[i].domain;
        bool is_used = domain[0] == '\0' || (of && strcmp(domain, of) != 0);

        for (int n = 0; !is_used && n < model->graph->n_nodes; n++)
            is_used = strcmp(model->graph->nodes[n]->domain, domain) == 0;
        if (is_used)
            model->opsets[kept++] = model->opsets[i];
    }
    model->n_opsets = kept;
}

typedef enum form { EXPANDED, TRAINING, EVALUATING, RUNNING } form;

// What a rewriting emits stands behind, and has its turn too.
static ot_status rewrite_nodes(ot_graph *graph, form to)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_op_def *op = graph->nodes[n]->op;
        void (*const rewritings[])(ot_grad * g) = {[EXPANDED] = op->expand,
                                                   [TRAINING] = op->train,
                                                   [EVALUATING] = op->eval,
                                                   [RUNNING] =
                                                       ot__op_is_composed(op) ? op->train : NULL};

        OT_TRY(ot__rewrite_node(graph->nodes[n], rewritings[to]));
    }
    drop_expanded(graph);
    return ot__graph_sort(graph);
}

ot_status ot__pass_expand(ot_model *model)
{
    const int64_t opset = ot__model_opset(model, "");

    OT_TRY(rewrite_nodes(model->graph, EXPANDED));
    if (ot__model_opset(model, "") != opset)
        OT_TRY(ot__pass_check(model));
    OT_TRY(ot__pass_prune(model));
    ot__pass_drop_imports(model, NULL);
    return ot__pass_finished(model, "expand");
}

static bool is_nonstandard(const ot_node *node)
{
    // Gradients of pools are in ONNX's domain only for ONNX Runtime.
    return node->domain[0] != '\0' || ot__ends_with(node->op_type, "Grad");
}

ot_status ot__pass_note_nonstandard(ot_model *model, const char **names)
{
    ot__buf text = {0};
    ot_status st;

    ot__graph_list_operators(model->graph, is_nonstandard, &text);
    st = text.length > 0 ? ot__model_set_metadata_text(model, OT_METADATA_NONSTANDARD, &text)
                         : ot__buf_status(&text);
    *names = st == OT_OK ? ot_model_metadata(model, OT_METADATA_NONSTANDARD) : NULL;
    return st;
}

bool ot__pass_has_training_form(const ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        if (model->graph->nodes[n]->op->train)
            return true;
    return ot__has_branches(model->graph);
}

ot_status ot__pass_train(ot_model *model)
{
    OT_TRY(rewrite_nodes(model->graph, TRAINING));
    OT_TRY(ot__branches_enter(model));
    return ot__pass_finished(model, "train");
}

ot_status ot__pass_eval(ot_model *model)
{
    OT_TRY(rewrite_nodes(model->graph, EVALUATING));
    return ot__pass_finished(model, "eval");
}

static bool has_composed(const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (ot__op_is_composed(graph->nodes[n]->op))
            return true;
    return false;
}

ot_status ot__pass_compose(ot_model *model, bool *changed)
{
    *changed = has_composed(model->graph);
    if (!*changed)
        return OT_OK;
    OT_TRY(rewrite_nodes(model->graph, RUNNING));
    return ot__pass_finished(model, "compose");
}
