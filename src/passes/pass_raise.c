// SPDX-License-Identifier: Apache-2.0
// A model of a later opset: nodes get the form that their operator has there.
#include <string.h>

#include "passes/passes.h"

// What was an attribute becomes input 1.
static ot_status axes_to_input(ot_node *node)
{
    const ot_attr *axes = ot__node_attr(node, "axes");
    ot_graph *graph = node->graph;
    ot_value **inputs = ot__arena_alloc(graph->model->arena, 2 * sizeof *inputs);
    char *name = ot__arena_printf(graph->model->arena, "%s_axes", node->outputs[0]->name);
    ot_tensor *tensor = ot__model_tensor_new(graph->model, OT_I64, &OT_SHAPE(axes->n));
    ot_value *list = name ? ot__graph_new_value(graph, name) : NULL;

    if (!inputs || !tensor || !list || !ot__graph_add_initializer(graph, list, tensor))
        return OT_ERR_NO_MEMORY;
    if (axes->n > 0)
        memcpy(tensor->data, axes->ints, (size_t)axes->n * sizeof *axes->ints);
    inputs[0] = node->inputs[0];
    inputs[1] = list;
    node->inputs = inputs;
    node->n_inputs = 2;
    ot__node_remove_attr(node, "axes");
    return OT_OK;
}

static bool reduces_by_attribute(const ot_node *node)
{
    return strncmp(node->op_type, "Reduce", strlen("Reduce")) == 0 && node->n_inputs == 1 &&
           ot__node_attr(node, "axes") != NULL;
}

// Equal parts were told by the number of outputs alone.
static bool splits_evenly(const ot_node *node)
{
    return strcmp(node->op_type, "Split") == 0 && (node->n_inputs < 2 || !node->inputs[1]) &&
           !ot__node_attr(node, "num_outputs");
}

static ot_status raise_node(ot_node *node, const ot_op_def *op, int64_t opset)
{
    char label[160];

    if (op == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "%s is not known at opset %" PRId64,
                         ot__node_label(node, label, sizeof label), opset);
    if (reduces_by_attribute(node))
        OT_TRY(axes_to_input(node));
    if (splits_evenly(node) && !ot__node_set_int(node, "num_outputs", node->n_outputs))
        return OT_ERR_NO_MEMORY;
    node->op = op;
    OT_TRY(ot__op_check_node(node));
    return ot__op_infer(node);
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
            OT_TRY(raise_node(node, op, opset));
    }
    OT_TRY(ot__model_set_opset(model, "", opset));
    return ot__pass_finished(model, "raise");
}
