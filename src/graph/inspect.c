// What the nodes of a model are, for those who only look.
#include "graph/graph.h"

int ot_model_node_count(const ot_model *model)
{
    return model->graph->n_nodes;
}

const char *ot_model_node_operator(const ot_model *model, int index)
{
    const ot_node *node;
    const char *name;

    if (index < 0 || index >= model->graph->n_nodes)
        return NULL;
    node = model->graph->nodes[index];
    if (node->domain[0] == '\0')
        return node->op_type;
    name = ot__arena_printf(model->arena, "%s.%s", node->domain, node->op_type);
    return name ? name : node->op_type;
}
