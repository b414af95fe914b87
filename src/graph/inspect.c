// SPDX-License-Identifier: Apache-2.0
// What the nodes of a model are, for those who only look.
#include "graph/graph.h"

int ot_model_node_count(const ot_model *model)
{
    return OT_IS_LIVE(model) ? model->graph->n_nodes : 0;
}

const char *ot_model_node_operator(const ot_model *model, int index)
{
    const ot_node *node;
    const char *name;

    if (!OT_IS_LIVE(model) || index < 0 || index >= model->graph->n_nodes)
        return NULL;
    node = model->graph->nodes[index];
    if (node->domain[0] == '\0')
        return node->op_type;
    name = ot__arena_printf(model->arena, "%s.%s", node->domain, node->op_type);
    return name ? name : node->op_type;
}

int ot_model_value_is_sequence(const ot_model *model, const char *name)
{
    const ot_value *value = OT_IS_LIVE(model) && name ? ot__graph_find(model->graph, name) : NULL;

    return value && value->kind == OT_VALUE_SEQUENCE;
}

const char *ot_model_value_dim(const ot_model *model, const char *name, int axis)
{
    const ot_value *value = OT_IS_LIVE(model) && name ? ot__graph_find(model->graph, name) : NULL;

    if (!value || !value->has_shape || axis < 0 || axis >= value->shape.ndim)
        return NULL;
    return ot__dim_name(model, value->shape.dim[axis]);
}

ot_status ot__graph_no_value(const ot_graph *graph, const char *name, const char *format, ...)
{
    char text[512];
    va_list args;
    ot__names all = {.wanted = name}, outputs = {.wanted = name};

    for (int i = 0; i < graph->n_outputs; i++) {
        if (!ot__starts_with(graph->outputs[i]->name, "onnx::")) // nobody chose that name
            ot__names_add(&outputs, graph->outputs[i]->name);
        ot__names_add(&all, graph->outputs[i]->name);
    }
    for (int i = 0; i < graph->n_inputs; i++)
        ot__names_add(&all, graph->inputs[i]->name);
    for (int i = 0; i < graph->n_initializers; i++)
        ot__names_add(&all, graph->initializers[i]->name);
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_outputs; k++)
            if (graph->nodes[i]->outputs[k])
                ot__names_add(&all, graph->nodes[i]->outputs[k]->name);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ot__error(
        OT_ERR_NOT_FOUND, "%s%s%s%s", text, outputs.count > 0 ? "; its outputs are " : "",
        outputs.count > 0 ? ot__names_list(&outputs, "outputs") : "", ot__names_hint(&all));
}
