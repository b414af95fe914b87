// SPDX-License-Identifier: Apache-2.0
// A model from its bytes: the file's message and graphs. Containers are walked here and taken apart
// into messages small enough for protobuf-c, so that no large constant is ever copied by it.
#include <string.h>

#include "onnx/protobuf/read.h"

// ---- protobuf-c, within limits ----

enum { ALLOC_HEADER = 16 }; // holds the size and keeps the alignment

static void *unpack_alloc(void *data, size_t size)
{
    ot__reader *reader = data;
    char *block = NULL;

    if (size > SIZE_MAX - ALLOC_HEADER || reader->n_unpacked > reader->limits.memory ||
        size > reader->limits.memory - reader->n_unpacked)
        ot__error(OT_ERR_NO_MEMORY, "reading needs more than the limit of %zu bytes",
                  reader->limits.memory);
    else
        block = ot__alloc(size + ALLOC_HEADER);
    if (!block) {
        reader->out_of_memory = true;
        return NULL;
    }
    memcpy(block, &size, sizeof size);
    reader->n_unpacked += size;
    return block + ALLOC_HEADER;
}

static void unpack_free(void *data, void *pointer)
{
    ot__reader *reader = data;
    size_t size;

    if (!pointer)
        return;
    memcpy(&size, (char *)pointer - ALLOC_HEADER, sizeof size);
    reader->n_unpacked -= size;
    ot__free((char *)pointer - ALLOC_HEADER);
}

ot_status ot__unpack(ot__reader *reader, const ProtobufCMessageDescriptor *type, ot__bytes bytes,
                     uint64_t kept, uint64_t apart, ot__unpacked *out)
{
    *out = (ot__unpacked){.reader = reader};
    OT_TRY(ot__wire_split(reader->model->arena, bytes, kept, apart, &out->parts));
    out->message = protobuf_c_message_unpack(type, &reader->allocator, out->parts.kept.size,
                                             out->parts.kept.data);
    if (out->message)
        return OT_OK;
    ot__unpacked_deinit(out);
    if (reader->out_of_memory)
        return OT_ERR_NO_MEMORY;
    return ot__error(OT_ERR_FORMAT, "malformed %s", type->short_name);
}

void ot__unpacked_deinit(ot__unpacked *unpacked)
{
    if (unpacked->message)
        protobuf_c_message_free_unpacked(unpacked->message, &unpacked->reader->allocator);
    ot__parts_deinit(&unpacked->parts);
    unpacked->message = NULL;
}

ot_status ot__keep_bytes(ot__reader *reader, ot_status status, ot__buf *from, ot__bytes *out)
{
    *out = (ot__bytes){0};
    if (status == OT_OK && from->length > 0) {
        out->size = from->length;
        out->data = ot__arena_memdup(reader->model->arena, from->data, from->length);
        status = ot__made(out->data);
    }
    ot__buf_deinit(from);
    return status;
}

ot_status ot__read_unknown(ot__reader *reader, const ProtobufCMessage *message, ot__bytes *out)
{
    ot__buf fields = {0};
    ot__wire wire = ot__wire_to(&fields);

    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[i];

        ot__wire_put_tag(&wire, field->tag, field->wire_type);
        ot__wire_raw(&wire, field->data, field->len); // with its length, where it has one
    }
    return ot__keep_bytes(reader, wire.status, &fields, out);
}

const char *ot__read_text(ot__reader *reader, const char *text)
{
    return text && *text ? ot__arena_strdup(reader->model->arena, text) : "";
}

ot_status ot__read_string(ot__reader *reader, const void *bytes, size_t n_bytes, ot__string *out)
{
    uint8_t *copy = ot__arena_alloc(reader->model->arena, n_bytes + 1);

    if (copy && n_bytes > 0)
        memcpy(copy, bytes, n_bytes);
    *out = (ot__string){copy, n_bytes};
    return ot__made(copy);
}

// ---- graphs ----

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_DOC = 10,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_SPARSE = 15,
    GRAPH_METADATA = 16,
};

static ot_status read_graph_strings(ot__reader *reader, ot__bytes bytes, ot_graph *graph)
{
    const uint64_t kept = OT_FIELD_BIT(GRAPH_NAME) | OT_FIELD_BIT(GRAPH_DOC);
    const uint64_t apart = OT_FIELD_BIT(GRAPH_NODE) | OT_FIELD_BIT(GRAPH_INITIALIZER) |
                           OT_FIELD_BIT(GRAPH_INPUT) | OT_FIELD_BIT(GRAPH_OUTPUT) |
                           OT_FIELD_BIT(GRAPH_VALUE_INFO) | OT_FIELD_BIT(GRAPH_SPARSE);
    const Onnx__GraphProto *proto;
    ot__unpacked unpacked;

    OT_TRY(ot__unpack(reader, &onnx__graph_proto__descriptor, bytes, kept, apart, &unpacked));
    proto = (const Onnx__GraphProto *)unpacked.message;
    graph->name = ot__read_text(reader, proto->name);
    graph->doc = ot__read_text(reader, proto->doc_string);
    graph->extra = unpacked.parts.rest;
    ot__unpacked_deinit(&unpacked);
    OT_TRY(ot__made(graph->name && graph->doc));
    return ot__read_metadata(reader, bytes, GRAPH_METADATA, &graph->metadata);
}

typedef ot_status (*reading)(ot__reader *reader, ot_graph *graph, ot__bytes bytes);

static ot_status read_all(ot__reader *reader, ot_graph *graph, ot__bytes bytes, uint32_t number,
                          reading read)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__bytes inner;

    while (ot__wire_next_of(&walk, number, &inner))
        OT_TRY(read(reader, graph, inner));
    return OT_OK;
}

typedef struct value_info {
    const char *name, *doc;
    ot__bytes type, extra;
    ot__metadata metadata;
} value_info;

static ot_status take_value_info_apart(ot__reader *reader, ot__bytes bytes, value_info *out)
{
    enum { NAME = 1, TYPE = 2, DOC = 3, METADATA = 4 };
    ot__walk walk = ot__walk_over(bytes);
    const Onnx__ValueInfoProto *proto;
    ot__unpacked unpacked;

    *out = (value_info){0};
    OT_TRY(ot__unpack(reader, &onnx__value_info_proto__descriptor, bytes,
                      OT_FIELD_BIT(NAME) | OT_FIELD_BIT(DOC), OT_FIELD_BIT(TYPE), &unpacked));
    proto = (const Onnx__ValueInfoProto *)unpacked.message;
    out->name = ot__read_text(reader, proto->name);
    out->doc = proto->doc_string ? ot__read_text(reader, proto->doc_string) : "";
    out->extra = unpacked.parts.rest;
    ot__unpacked_deinit(&unpacked);
    while (ot__wire_next_of(&walk, TYPE, &out->type))
        continue; // the last one counts
    OT_TRY(ot__made(out->name && out->doc));
    return ot__read_metadata(reader, bytes, METADATA, &out->metadata);
}

static ot_status apply_value_info(ot__reader *reader, const value_info *info, ot_value *value)
{
    value->doc = info->doc[0] ? info->doc : NULL;
    value->extra = info->extra;
    value->metadata = info->metadata;
    return info->type.data ? ot__error_prefix(ot__read_type(reader, info->type, value),
                                              "value '%s'", value->name)
                           : OT_OK;
}

ot_status ot__define_input(ot_graph *graph, const char *name, ot_value **out)
{
    *out = NULL;
    if (ot__graph_find(graph, name))
        return ot__error(OT_ERR_FORMAT, "input '%s' of graph '%s' is defined twice", name,
                         graph->name);
    *out = ot__graph_value(graph, name);
    return ot__made(ot__graph_add_input(graph, *out));
}

static ot_status read_input(ot__reader *reader, ot_graph *graph, ot__bytes bytes)
{
    value_info info;
    ot_value *value;

    OT_TRY(take_value_info_apart(reader, bytes, &info));
    if (!info.name[0])
        return ot__error(OT_ERR_FORMAT, "input %d of graph '%s' has no name", graph->n_inputs,
                         graph->name);
    OT_TRY(ot__define_input(graph, info.name, &value));
    return apply_value_info(reader, &info, value);
}

static ot_status read_output(ot__reader *reader, ot_graph *graph, ot__bytes bytes)
{
    value_info info;
    ot_value *value;

    OT_TRY(take_value_info_apart(reader, bytes, &info));
    if (!info.name[0])
        return ot__error(OT_ERR_FORMAT, "output %d of graph '%s' has no name", graph->n_outputs,
                         graph->name);
    OT_TRY(ot__find_node_input(graph, info.name, &value));
    OT_TRY(ot__made(ot__graph_add_output(graph, value)));
    // The elements know better, and an input has been described already.
    return value->constant || value->is_input ? OT_OK : apply_value_info(reader, &info, value);
}

ot_status ot__read_value_info(ot__reader *reader, ot_graph *graph, ot__bytes bytes)
{
    value_info info;
    ot_value *value;

    OT_TRY(take_value_info_apart(reader, bytes, &info));
    value = ot__graph_find(graph, info.name);
    // Without a node that makes it, it tells nothing about this graph, but perhaps other programs.
    if (!value || !value->producer) {
        OT_TRY(ot__made(ot__arena_grow(reader->model->arena, &graph->infos, &graph->infos_capacity,
                                       graph->n_infos, sizeof *graph->infos)));
        graph->infos[graph->n_infos++] = (ot__kept_info){info.name, bytes};
        return value ? ot__add_metadata(reader, &info.metadata, value) : OT_OK;
    }
    return apply_value_info(reader, &info, value);
}

ot_status ot__add_initializer(ot__reader *reader, ot_graph *graph, const ot__read_tensor *read)
{
    ot_value *value;

    if (!read->name[0])
        return ot__error(OT_ERR_FORMAT, "initializer %d of graph '%s' has no name",
                         graph->n_initializers, graph->name);
    value = ot__graph_value(graph, read->name);
    OT_TRY(ot__made(value));
    if (value->is_initializer)
        return ot__error(OT_ERR_FORMAT, "initializer '%s' of graph '%s' is defined twice",
                         read->name, graph->name);
    value->tensor_extra = read->extra;
    value->tensor_doc = read->doc[0] ? read->doc : NULL;
    OT_TRY(ot__add_metadata(reader, &read->metadata, value));
    return ot__made(ot__graph_add_initializer(graph, value, read->tensor));
}

static ot_status read_initializer(ot__reader *reader, ot_graph *graph, ot__bytes bytes)
{
    ot__read_tensor read;
    ot_status st;

    reader->in_initializer = true;
    st = ot__read_tensor_proto(reader, bytes, &read);
    reader->in_initializer = false;
    return st == OT_OK ? ot__add_initializer(reader, graph, &read) : st;
}

static ot_status read_sparse_initializer(ot__reader *reader, ot_graph *graph, ot__bytes bytes)
{
    ot__read_tensor read;

    OT_TRY(ot__read_sparse_tensor(reader, bytes, &read));
    return ot__add_initializer(reader, graph, &read);
}

// Up to IR version 3 initializers had to be inputs too. Nobody gives these, and a parameter would
// be listed twice.
void ot__drop_initialized_inputs(ot_graph *graph)
{
    const int64_t initializers_stand_alone = 4;
    const int n_inputs = graph->n_inputs;

    for (int i = 0; i < n_inputs; i++)
        graph->inputs[i]->is_input = !graph->inputs[i]->is_initializer;
    ot__graph_relist(graph);
    if (graph->n_inputs < n_inputs)
        graph->model->ir_version = OT_MAX(graph->model->ir_version, initializers_stand_alone);
}

ot_status ot__read_graph(ot__reader *reader, ot__bytes bytes, ot_graph *graph)
{
    OT_TRY(read_graph_strings(reader, bytes, graph));
    OT_TRY(read_all(reader, graph, bytes, GRAPH_INPUT, read_input));
    OT_TRY(read_all(reader, graph, bytes, GRAPH_INITIALIZER, read_initializer));
    OT_TRY(read_all(reader, graph, bytes, GRAPH_SPARSE, read_sparse_initializer));
    ot__drop_initialized_inputs(graph);
    OT_TRY(read_all(reader, graph, bytes, GRAPH_NODE, ot__read_node));
    OT_TRY(read_all(reader, graph, bytes, GRAPH_VALUE_INFO, ot__read_value_info));
    return read_all(reader, graph, bytes, GRAPH_OUTPUT, read_output);
}

// ---- the model ----

enum { MODEL_GRAPH = 7, MODEL_FUNCTION = 25 };

static ot_status pb_read_metadata(ot__reader *reader, const Onnx__ModelProto *proto)
{
    ot_model *model = reader->model;
    ot__bytes *extra;

    if (proto->n_metadata_props == 0)
        return OT_OK;
    if (proto->n_metadata_props > INT32_MAX / 2)
        return ot__error(OT_ERR_FORMAT, "%zu metadata entries", proto->n_metadata_props);
    model->metadata =
        ot__arena_alloc(model->arena, proto->n_metadata_props * 2 * sizeof *model->metadata);
    extra = ot__arena_alloc(model->arena, proto->n_metadata_props * sizeof *extra);
    OT_TRY(ot__made(model->metadata && extra));
    model->metadata_extra = extra;
    for (size_t i = 0; i < proto->n_metadata_props; i++) {
        model->metadata[2 * i] = ot__read_text(reader, proto->metadata_props[i]->key);
        model->metadata[2 * i + 1] = ot__read_text(reader, proto->metadata_props[i]->value);
        OT_TRY(ot__made(model->metadata[2 * i] && model->metadata[2 * i + 1]));
        OT_TRY(ot__read_unknown(reader, &proto->metadata_props[i]->base, &extra[i]));
    }
    model->n_metadata_extra = (int)proto->n_metadata_props;
    model->n_metadata = (int)proto->n_metadata_props;
    return OT_OK;
}

static ot_status read_model_fields(ot__reader *reader, const Onnx__ModelProto *proto)
{
    ot_model *model = reader->model;

    if (!proto->has_ir_version || proto->ir_version <= 0)
        return ot__error(OT_ERR_FORMAT, "no ONNX model: ir_version is missing");
    model->ir_version = proto->ir_version;
    model->model_version = proto->model_version;
    model->producer_name = ot__read_text(reader, proto->producer_name);
    model->producer_version = ot__read_text(reader, proto->producer_version);
    model->domain = ot__read_text(reader, proto->domain);
    model->doc = ot__read_text(reader, proto->doc_string);
    OT_TRY(
        ot__made(model->producer_name && model->producer_version && model->domain && model->doc));
    OT_TRY(ot__read_opsets(reader, proto->opset_import, proto->n_opset_import, &model->opsets,
                           &model->n_opsets));
    model->opsets_capacity = model->n_opsets;
    return pb_read_metadata(reader, proto);
}

static ot_status read_functions(ot__reader *reader, ot__bytes bytes)
{
    ot_model *model = reader->model;
    ot__walk walk = ot__walk_over(bytes);
    int capacity = 0;
    ot__bytes inner;

    reader->in_function = true;
    while (ot__wire_next_of(&walk, MODEL_FUNCTION, &inner)) {
        ot__function *function;

        OT_TRY(ot__read_function(reader, inner, &function));
        OT_TRY(ot__made(ot__arena_grow(model->arena, &model->functions, &capacity,
                                       model->n_functions, sizeof *model->functions)));
        model->functions[model->n_functions++] = function;
    }
    reader->in_function = false;
    return OT_OK;
}

static ot_status read_main_graph(ot__reader *reader, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    int n_graphs = 0;
    ot__bytes inner;

    while (ot__wire_next_of(&walk, MODEL_GRAPH, &inner)) {
        if (n_graphs++ > 0)
            return ot__error(OT_ERR_FORMAT, "the model has more than one graph");
        OT_TRY(ot__read_graph(reader, inner, reader->model->graph));
    }
    if (n_graphs == 0)
        return ot__error(OT_ERR_FORMAT, "the model has no graph");
    return OT_OK;
}

static ot_status pb_read_model(ot__reader *reader, ot__bytes bytes)
{
    const uint64_t kept = OT_FIELD_BIT(1) | OT_FIELD_BIT(2) | OT_FIELD_BIT(3) | OT_FIELD_BIT(4) |
                          OT_FIELD_BIT(5) | OT_FIELD_BIT(6) | OT_FIELD_BIT(8) | OT_FIELD_BIT(14);
    const uint64_t apart = OT_FIELD_BIT(MODEL_GRAPH) | OT_FIELD_BIT(MODEL_FUNCTION);
    ot__unpacked unpacked;
    ot_status st;

    OT_TRY(ot__unpack(reader, &onnx__model_proto__descriptor, bytes, kept, apart, &unpacked));
    reader->model->extra = unpacked.parts.rest;
    st = read_model_fields(reader, (const Onnx__ModelProto *)unpacked.message);
    ot__unpacked_deinit(&unpacked);
    OT_TRY(st);
    OT_TRY(read_functions(reader, bytes));
    return read_main_graph(reader, bytes);
}

ot_status ot__reader_init(ot__reader *reader, const char *folder, ot__limits limits)
{
    *reader = (ot__reader){.limits = limits};
    OT_TRY(ot__model_create(&reader->model));
    reader->allocator = (ProtobufCAllocator){unpack_alloc, unpack_free, reader};
    reader->external.arena = reader->model->arena;
    ot__arena_limit(reader->model->arena, limits.memory);
    if (!folder)
        return OT_OK;
    reader->model->folder = ot__arena_strdup(reader->model->arena, folder);
    return ot__made(reader->model->folder);
}

ot_status ot__reader_finish(ot__reader *reader, ot_status status, const char *where, ot_model **out)
{
    *out = NULL;
    OT_THEN(status, ot__external_finish(&reader->external));
    OT_THEN(status, ot__model_verify(reader->model));
    if (status != OT_OK) {
        ot_model_destroy(reader->model);
        return ot__error_prefix(status, "%s", where);
    }
    ot__arena_limit(reader->model->arena, SIZE_MAX);
    *out = reader->model;
    return OT_OK;
}

ot_status ot__onnx_read(const void *bytes, size_t n_bytes, const ot_model_options *options,
                        const char *where, const char *folder, ot_model **out)
{
    ot__reader reader;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__onnx_guard(bytes, n_bytes, options, where));
    st = ot__reader_init(&reader, folder, ot__limits_of(options, n_bytes));
    OT_THEN(st, pb_read_model(&reader, (ot__bytes){bytes, n_bytes}));
    return ot__reader_finish(&reader, st, where, out);
}
