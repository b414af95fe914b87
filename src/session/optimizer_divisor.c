// SPDX-License-Identifier: Apache-2.0
// Optimizer models of ONNX Runtime take gradients as they are. The mean of what steps and ranks
// have added up is made by the operator that reads them, instead of in a pass over them before.
#include <string.h>

#include "session/session_internal.h"

static bool node_takes(const ot_node *node, const ot_value *value)
{
    for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k] == value)
            return true;
    return false;
}

// NULL: there is none, or several; of a model that gives the gradients themselves out, none.
static ot_node *only_reader(const ot_graph *g, const ot_value *value)
{
    ot_node *reader = NULL;

    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value)
            return NULL;
    for (int i = 0; i < g->n_nodes; i++) {
        if (!node_takes(g->nodes[i], value))
            continue;
        if (reader != NULL)
            return NULL;
        reader = g->nodes[i];
    }
    return reader;
}

// -1: the operator has none of that name, or the node uses it.
static int free_port(const ot_node *node, const char *name)
{
    const ot_port *ports = node->op->inputs;

    for (int k = 0; ports[k].name != NULL; k++)
        if (strcmp(ports[k].name, name) == 0)
            return k < node->n_inputs && node->inputs[k] != NULL ? -1 : k;
    return -1;
}

static ot_status add_divisor(ot_graph *g, ot_node *node, int port)
{
    ot_value *divisor = ot__graph_value(g, OT_INPUT_DIVISOR);

    OT_TRY(ot__made(divisor != NULL));
    if (divisor->is_input || divisor->producer != NULL || divisor->constant != NULL)
        return OT_OK; // the name means something else
    ot__value_set(divisor, OT_F32, &OT_SHAPE(1));
    return ot__made(ot__node_put_input(node, port, divisor) && ot__graph_add_input(g, divisor));
}

ot_status ot__optimizer_take_divisor(ot_model *model)
{
    ot_graph *g = model->graph;
    const ot_value *gradients = ot__graph_find(g, OT_INPUT_GRADIENTS);
    ot_node *node = gradients != NULL && gradients->is_input ? only_reader(g, gradients) : NULL;
    const int port = node != NULL ? free_port(node, OT_INPUT_DIVISOR) : -1;

    return port >= 0 ? add_divisor(g, node, port) : OT_OK;
}
