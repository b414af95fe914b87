// SPDX-License-Identifier: Apache-2.0
// A model of a later opset: nodes get the form that their operator has there.
#include "passes/passes.h"

static ot_status raise_one(ot_node *node, const ot_op_def *op, int64_t opset)
{
    if (op == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "%s is not known at opset %" PRId64, OT_LABEL(node),
                         opset);
    return ot__op_raise_node(node, op);
}

bool ot__pass_is_of_opset(const ot_model *model, int64_t opset)
{
    for (int n = 0; n < model->graph->n_nodes; n++) {
        const ot_node *node = model->graph->nodes[n];

        if (node->domain[0] == '\0' && !ot__op_is_foreign(node) &&
            ot__op_find("", node->op_type, opset) != node->op)
            return false;
    }
    return true;
}

ot_status ot__pass_raise(ot_model *model, int64_t opset)
{
    for (int n = 0; n < model->graph->n_nodes; n++) {
        ot_node *node = model->graph->nodes[n];
        const ot_op_def *op = ot__op_find("", node->op_type, opset);

        if (node->domain[0] == '\0' && !ot__op_is_foreign(node) && op != node->op)
            OT_TRY(raise_one(node, op, opset));
    }
    OT_TRY(ot__graph_sort(model->graph)); // what a node is raised to may read new ones
    OT_TRY(ot__model_set_opset(model, "", opset));
    return ot__pass_finished(model, "raise");
}
