// SPDX-License-Identifier: Apache-2.0
// A model from the bytes of an .ort file. Only what the graph is made of is read: edges, node
// indices, argument counts, operator constraints and recorded optimisations follow from it, and no
// number of the file is used as an index.
#include <string.h>

#include "onnx/ort/ort.h"

// ---- limits ----

ot_status ot__ort_check_depth(ot__ort_reader *r, int depth)
{
    if (depth > r->reader.limits.depth)
        return ot__error(OT_ERR_NO_MEMORY, "tables are nested more than %d deep",
                         r->reader.limits.depth);
    return OT_OK;
}

ot_status ot__ort_read_text(ot__ort_reader *r, const ot__fb_table *table, int slot,
                            const char **out)
{
    const char *text = ot__fb_string(&r->fb, table, slot);

    *out = "";
    OT_TRY(r->fb.status);
    *out = ot__read_text(&r->reader, text);
    return ot__made(*out);
}

// ---- the values of a graph ----

static ot_status ort_read_graph_ends(ot__ort_reader *r, const ot__fb_table *table, int slot,
                                     ot_graph *graph, ot__finding take)
{
    ot__fb_vector names = ot__fb_subvector(&r->fb, table, slot, 4);
    ot_value *value;

    for (size_t i = 0; i < names.count; i++) {
        const char *name = ot__fb_string_element(&r->fb, names, i);

        OT_TRY(r->fb.status);
        if (!name || !*name)
            return ot__error(OT_ERR_FORMAT, "%s %zu of graph '%s' has no name",
                             slot == ORT_GRAPH_INPUTS ? "input" : "output", i, graph->name);
        OT_TRY(ot__count_one(&r->reader.limits, &r->n_values, "values"));
        OT_TRY(take(graph, name, &value));
    }
    return r->fb.status;
}

static ot_status take_output(ot_graph *graph, const char *name, ot_value **out)
{
    OT_TRY(ot__find_node_input(graph, name, out));
    return ot__made(ot__graph_add_output(graph, *out));
}

typedef ot_status (*tensor_reading)(ot__ort_reader *r, const ot__fb_table *table,
                                    ot__read_tensor *out);

static ot_status read_initializers(ot__ort_reader *r, const ot__fb_table *table, int slot,
                                   tensor_reading read_one, ot_graph *graph)
{
    ot__fb_vector tensors = ot__fb_subvector(&r->fb, table, slot, 4);
    ot__fb_table tensor;

    while (ot__fb_next(&r->fb, &tensors, &tensor)) {
        ot__read_tensor read;

        OT_TRY(ot__count_one(&r->reader.limits, &r->n_values, "values"));
        OT_TRY(read_one(r, &tensor, &read));
        OT_TRY(ot__add_initializer(&r->reader, graph, &read));
    }
    return r->fb.status;
}

// Types are for the values that this graph makes: of others the graph around it has them.
static ot_status read_value_info(ot__ort_reader *r, const ot__fb_table *info, ot__map *seen,
                                 ot_graph *graph, int depth)
{
    const char *name = ot__fb_string(&r->fb, info, ORT_VALUE_NAME), *doc;
    ot_value *value;

    OT_TRY(r->fb.status);
    if (!name)
        return ot__error(OT_ERR_FORMAT, "a value of graph '%s' has no name", graph->name);
    OT_TRY(ot__count_one(&r->reader.limits, &r->n_values, "values"));
    if (ot__map_get(seen, name))
        return ot__error(OT_ERR_FORMAT, "value '%s' of graph '%s' is described twice", name,
                         graph->name);
    OT_TRY(ot__made(ot__map_put(seen, name, graph)));
    value = ot__graph_find(graph, name);
    if (!value || value->is_initializer) // elements know better
        return OT_OK;
    OT_TRY(ot__ort_read_text(r, info, ORT_VALUE_DOC, &doc));
    value->doc = doc[0] ? doc : NULL;
    return ot__error_prefix(ot__ort_read_type(r, info, value, depth + 1), "value '%s'", name);
}

static ot_status check_described(const ot_graph *graph, const ot__map *seen)
{
    size_t position = 0;
    const char *name;
    void *value;

    while (ot__map_next(&graph->values, &position, &name, &value))
        if (!ot__map_get(seen, name))
            return ot__error(OT_ERR_FORMAT, "value '%s' of graph '%s' is not described", name,
                             graph->name);
    return OT_OK;
}

static ot_status read_value_infos(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                                  int depth)
{
    ot__fb_vector infos = ot__fb_subvector(&r->fb, table, ORT_GRAPH_VALUES, 4);
    ot__map seen = {0};
    ot__fb_table info;
    ot_status st = OT_OK;

    while (st == OT_OK && ot__fb_next(&r->fb, &infos, &info))
        st = read_value_info(r, &info, &seen, graph, depth + 1);
    OT_THEN(st, r->fb.status);
    OT_THEN(st, check_described(graph, &seen));
    ot__map_deinit(&seen);
    return st;
}

// ---- graphs ----

// Nodes may stand in any order, and a subgraph may read what a later node makes: names are known
// before the nodes are read.
static ot_status declare_outputs(ot__ort_reader *r, ot__fb_vector nodes, ot_graph *graph)
{
    ot__fb_table node;

    while (ot__fb_next(&r->fb, &nodes, &node)) {
        ot__fb_vector names = ot__fb_subvector(&r->fb, &node, ORT_NODE_OUTPUTS, 4);

        for (size_t k = 0; k < names.count; k++) {
            const char *name = ot__fb_string_element(&r->fb, names, k);

            OT_TRY(r->fb.status);
            OT_TRY(ot__count_one(&r->reader.limits, &r->n_values, "values"));
            OT_TRY(ot__made(!*name || ot__graph_value(graph, name)));
        }
        OT_TRY(r->fb.status);
    }
    return r->fb.status;
}

ot_status ot__ort_read_graph(ot__ort_reader *r, const ot__fb_table *table, ot_graph *graph,
                             int depth)
{
    ot__fb_vector nodes;
    ot__fb_table node;

    OT_TRY(ot__ort_check_depth(r, depth));
    OT_TRY(ort_read_graph_ends(r, table, ORT_GRAPH_INPUTS, graph, ot__define_input));
    OT_TRY(read_initializers(r, table, ORT_GRAPH_INITIALIZERS, ot__ort_read_tensor, graph));
    OT_TRY(read_initializers(r, table, ORT_GRAPH_SPARSE_INITIALIZERS, ot__ort_read_sparse, graph));
    nodes = ot__fb_subvector(&r->fb, table, ORT_GRAPH_NODES, 4);
    OT_TRY(declare_outputs(r, nodes, graph));
    while (ot__fb_next(&r->fb, &nodes, &node))
        OT_TRY(ot__ort_read_node(r, &node, graph, depth + 1));
    OT_TRY(r->fb.status);
    OT_TRY(ort_read_graph_ends(r, table, ORT_GRAPH_OUTPUTS, graph, take_output));
    OT_TRY(read_value_infos(r, table, graph, depth));
    ot__drop_initialized_inputs(graph);
    return ot__graph_sort(graph);
}

// ---- the model ----

static ot_status read_opsets(ot__ort_reader *r, const ot__fb_table *model)
{
    ot__fb_vector opsets = ot__fb_subvector(&r->fb, model, ORT_MODEL_OPSETS, 4);

    OT_TRY(r->fb.status);
    if (opsets.count == 0)
        return ot__error(OT_ERR_FORMAT, "the model imports no opset");
    for (size_t i = 0; i < opsets.count; i++) {
        ot__fb_table opset = ot__fb_element(&r->fb, opsets, i);
        const char *domain = ot__fb_string(&r->fb, &opset, 0);
        int64_t version = ot__fb_int(&r->fb, &opset, 1, 8, 0);

        OT_TRY(r->fb.status);
        if (!domain || version < 1 || version > INT32_MAX)
            return ot__error(OT_ERR_FORMAT, "opset import %zu has %s", i,
                             domain ? "an impossible version" : "no domain");
        if (ot__model_opset(r->reader.model, domain) != 0)
            return ot__error(OT_ERR_FORMAT, "the opset of domain '%s' is imported twice", domain);
        if (strcmp(domain, "ai.onnx") == 0)
            domain = "";
        OT_TRY(ot__model_set_opset(r->reader.model, domain, version));
    }
    return OT_OK;
}

static ot_status ort_read_metadata(ot__ort_reader *r, const ot__fb_table *model)
{
    ot_model *to = r->reader.model;
    ot__fb_vector entries = ot__fb_subvector(&r->fb, model, ORT_MODEL_METADATA, 4);

    OT_TRY(r->fb.status);
    if (entries.count == 0)
        return OT_OK;
    to->metadata = ot__arena_alloc(to->arena, entries.count * 2 * sizeof *to->metadata);
    OT_TRY(ot__made(to->metadata));
    for (size_t i = 0; i < entries.count; i++) {
        ot__fb_table entry = ot__fb_element(&r->fb, entries, i);

        OT_TRY(r->fb.status);
        OT_TRY(ot__ort_read_text(r, &entry, 0, &to->metadata[2 * i]));
        OT_TRY(ot__ort_read_text(r, &entry, 1, &to->metadata[2 * i + 1]));
        to->n_metadata = (int)i + 1;
    }
    return OT_OK;
}

static ot_status ort_read_model(ot__ort_reader *r, const ot__fb_table *table)
{
    const int64_t no_version = INT64_MAX, initializers_stand_alone = 4;
    ot_model *model = r->reader.model;
    ot__fb_table graph = ot__fb_subtable(&r->fb, table, ORT_MODEL_GRAPH);

    OT_TRY(r->fb.status);
    if (graph.position == 0)
        return ot__error(OT_ERR_FORMAT, "the model has no graph");
    model->ir_version = ot__fb_int(&r->fb, table, ORT_MODEL_IR_VERSION, 8, 0);
    model->ir_version = OT_MAX(model->ir_version, initializers_stand_alone); // it may be missing
    model->model_version = ot__fb_int(&r->fb, table, ORT_MODEL_VERSION, 8, 0);
    if (model->model_version == no_version)
        model->model_version = 0;
    OT_TRY(ot__ort_read_text(r, table, ORT_MODEL_PRODUCER_NAME, &model->producer_name));
    OT_TRY(ot__ort_read_text(r, table, ORT_MODEL_PRODUCER_VERSION, &model->producer_version));
    OT_TRY(ot__ort_read_text(r, table, ORT_MODEL_DOMAIN, &model->domain));
    OT_TRY(ot__ort_read_text(r, table, ORT_MODEL_DOC, &model->doc));
    OT_TRY(ot__ort_read_text(r, table, ORT_MODEL_GRAPH_DOC, &model->graph->doc));
    OT_TRY(read_opsets(r, table));
    OT_TRY(ort_read_metadata(r, table));
    model->graph->name = "main"; // the format keeps no names of graphs
    return ot__ort_read_graph(r, &graph, model->graph, 3);
}

static ot_status read_session(ot__ort_reader *r)
{
    ot__fb_table session = ot__fb_root(&r->fb, OT_ORT_IDENTIFIER, "model in ORT format");
    const char *text = ot__fb_string(&r->fb, &session, ORT_SESSION_VERSION);
    ot__fb_table model;
    int64_t version;

    OT_TRY(r->fb.status);
    if (!text || !ot__parse_int(text, &version) || version < OT_ORT_VERSION_OLDEST ||
        version > OT_ORT_VERSION)
        return ot__error(OT_ERR_FORMAT, "has ORT format version '%s', expected %d to %d",
                         text ? text : "", OT_ORT_VERSION_OLDEST, OT_ORT_VERSION);
    model = ot__fb_subtable(&r->fb, &session, ORT_SESSION_MODEL);
    OT_TRY(r->fb.status);
    if (model.position == 0)
        return ot__error(OT_ERR_FORMAT, "the file has no model");
    return ort_read_model(r, &model);
}

bool ot__is_ort(const void *bytes, size_t n_bytes)
{
    return n_bytes > 8 && memcmp((const char *)bytes + 4, OT_ORT_IDENTIFIER, 4) == 0;
}

ot_status ot__ort_read(const void *bytes, size_t n_bytes, const ot_model_options *options,
                       const char *where, ot_model **out)
{
    ot__ort_reader r = {.fb = {.bytes = bytes, .size = n_bytes}};
    ot_status st;

    *out = NULL;
    st = ot__reader_init(&r.reader, NULL, ot__limits_of(options, n_bytes));
    if (st == OT_OK && n_bytes > INT32_MAX)
        st = ot__error(OT_ERR_FORMAT, "has %zu bytes, more than the %d of its format", n_bytes,
                       INT32_MAX);
    OT_THEN(st, read_session(&r));
    return ot__reader_finish(&r.reader, st, where, out);
}
