// SPDX-License-Identifier: Apache-2.0
// Types, shapes and known elements of every value.
#include "passes/passes.h"

static const ot_value *first_output(const ot_node *node)
{
    int i = 0;

    while (i < node->n_outputs - 1 && !node->outputs[i])
        i++;
    return node->outputs[i];
}

// What a file states of shapes is a hint: exporters write batch sizes of the example, names that
// stand for several extents, axes that are not there.
static void warn(const ot_node *node, int n_wrong)
{
    ot__log(OT_LOG_WARNING,
            "the file declares a wrong shape for '%s'%s; the inferred shape is used",
            first_output(node)->name, n_wrong > 1 ? " and others" : "");
}

ot_status ot__pass_infer_node(ot_node *node)
{
    bool is_wrong;

    OT_TRY(ot__op_infer_stated(node, &is_wrong));
    if (is_wrong)
        warn(node, 1);
    return OT_OK;
}

ot_status ot__pass_infer(ot_model *model)
{
    const ot_graph *graph = model->graph;
    const ot_node *first = NULL;
    int n_wrong = 0;

    for (int n = 0; n < graph->n_nodes; n++) {
        bool is_wrong;

        OT_TRY(ot__op_infer_stated(graph->nodes[n], &is_wrong));
        if (is_wrong && n_wrong++ == 0)
            first = graph->nodes[n];
    }
    if (n_wrong > 0)
        warn(first, n_wrong);
    return ot__pass_finished(model, "infer");
}
