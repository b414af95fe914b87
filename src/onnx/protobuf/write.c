// SPDX-License-Identifier: Apache-2.0
// A model as protobuf bytes. Fields stand in the order of their numbers, what was passed through
// comes last.
#include <string.h>

#include "onnx/protobuf/write.h"

static void write_values(ot__wire *wire, uint32_t number, const ot_model *model,
                         ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++) {
        const ot__typed_value typed = {model, values[i]};

        ot__wire_put_message(wire, number, ot__write_value_info, &typed);
    }
}

static bool is_made_by_node(const ot_graph *graph, const char *name)
{
    const ot_value *value = ot__graph_find(graph, name);

    return value && value->producer;
}

static void write_value_infos(ot__wire *wire, uint32_t number, const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        for (int i = 0; i < graph->nodes[n]->n_outputs; i++) {
            const ot__typed_value typed = {graph->model, graph->nodes[n]->outputs[i]};

            if (typed.value && !typed.value->is_output &&
                (typed.value->kind != OT_VALUE_UNTYPED || typed.value->doc ||
                 typed.value->extra.size > 0))
                ot__wire_put_message(wire, number, ot__write_value_info, &typed);
        }
    }
    for (int i = 0; i < graph->n_infos; i++)
        if (!is_made_by_node(graph, graph->infos[i].name))
            ot__wire_put_bytes(wire, number, graph->infos[i].bytes.data,
                               graph->infos[i].bytes.size);
}

void ot__write_graph(ot__wire *wire, const void *object)
{
    const ot_graph *graph = object;

    for (int i = 0; i < graph->n_nodes; i++)
        ot__wire_put_message(wire, 1, ot__write_node, graph->nodes[i]);
    ot__wire_put_text(wire, 2, graph->name);
    for (int i = 0; i < graph->n_initializers; i++)
        ot__wire_put_message(wire, 5, ot__write_initializer, graph->initializers[i]);
    ot__wire_put_text(wire, 10, graph->doc);
    write_values(wire, 11, graph->model, graph->inputs, graph->n_inputs);
    write_values(wire, 12, graph->model, graph->outputs, graph->n_outputs);
    write_value_infos(wire, 13, graph);
    ot__wire_raw(wire, graph->extra.data, graph->extra.size);
}

static void pb_write_opset(ot__wire *wire, const void *object)
{
    const ot__opset *opset = object;

    ot__wire_put_name(wire, 1, opset->domain);
    ot__wire_put_int(wire, 2, opset->version);
    ot__wire_raw(wire, opset->extra.data, opset->extra.size);
}

static void write_names(ot__wire *wire, uint32_t number, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        ot__wire_put_name(wire, number, names[i]);
}

static void write_function(ot__wire *wire, const void *object)
{
    const ot__function *function = object;

    ot__wire_put_name(wire, 1, function->name);
    write_names(wire, 4, function->inputs, function->n_inputs);
    write_names(wire, 5, function->outputs, function->n_outputs);
    write_names(wire, 6, function->attrs, function->n_attrs);
    for (int i = 0; i < function->body->n_nodes; i++)
        ot__wire_put_message(wire, 7, ot__write_node, function->body->nodes[i]);
    ot__wire_put_text(wire, 8, function->doc);
    for (int i = 0; i < function->n_opsets; i++)
        ot__wire_put_message(wire, 9, pb_write_opset, &function->opsets[i]);
    ot__wire_put_text(wire, 10, function->domain);
    for (int i = 0; i < function->n_attr_defaults; i++)
        ot__wire_put_message(wire, 11, ot__write_attr, function->attr_defaults[i]);
    write_value_infos(wire, 12, function->body);
    ot__wire_put_text(wire, 13, function->overload);
    ot__wire_raw(wire, function->extra.data, function->extra.size);
}

typedef struct metadata {
    const char *const *pair;
    ot__bytes extra;
} metadata;

static void pb_write_metadata(ot__wire *wire, const void *object)
{
    const metadata *entry = object;

    ot__wire_put_name(wire, 1, entry->pair[0]);
    ot__wire_put_name(wire, 2, entry->pair[1]);
    ot__wire_raw(wire, entry->extra.data, entry->extra.size);
}

void ot__write_model(ot__wire *wire, const void *object)
{
    const ot_model *model = object;

    ot__wire_put_int(wire, 1, model->ir_version);
    ot__wire_put_text(wire, 2, model->producer_name);
    ot__wire_put_text(wire, 3, model->producer_version);
    ot__wire_put_text(wire, 4, model->domain);
    if (model->model_version != 0)
        ot__wire_put_int(wire, 5, model->model_version);
    ot__wire_put_text(wire, 6, model->doc);
    ot__wire_put_message(wire, 7, ot__write_graph, model->graph);
    for (int i = 0; i < model->n_opsets; i++)
        ot__wire_put_message(wire, 8, pb_write_opset, &model->opsets[i]);
    for (int i = 0; i < model->n_metadata; i++) {
        const metadata entry = {&model->metadata[2 * i], i < model->n_metadata_extra
                                                             ? model->metadata_extra[i]
                                                             : (ot__bytes){0}};

        ot__wire_put_message(wire, 14, pb_write_metadata, &entry);
    }
    for (int i = 0; i < model->n_functions; i++)
        ot__wire_put_message(wire, 25, write_function, model->functions[i]);
    ot__wire_raw(wire, model->extra.data, model->extra.size);
}

ot_status ot__onnx_write(const ot_model *model, ot__buf *out)
{
    ot__wire wire = ot__wire_to(out);

    ot__write_model(&wire, model);
    return wire.status;
}
