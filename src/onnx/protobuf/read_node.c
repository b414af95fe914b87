// SPDX-License-Identifier: Apache-2.0
// Nodes and attributes.
#include <string.h>

#include "onnx/protobuf/read.h"

enum { NODE_ATTRIBUTE = 5, NODE_METADATA = 9 };

// ---- attributes ----

static ot_attr_kind kind_of_field(uint32_t number)
{
    for (int kind = OT_ATTR_FLOAT; kind < OT_ATTR_KINDS; kind++)
        if (ot__attr_rows[kind].field == number)
            return (ot_attr_kind)kind;
    return OT_ATTR_UNDEFINED;
}

// The kind comes from `type`; files of IR version 1 have none, there the field that is present
// tells it.
static ot_status check_kind(ot_attr *attr, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__field field;

    if ((unsigned)attr->kind >= OT_ATTR_KINDS)
        return ot__error(OT_ERR_FORMAT, "type %d is not known", (int)attr->kind);
    while (ot__wire_next(&walk, &field)) {
        ot_attr_kind kind = kind_of_field(field.number);

        if (kind == OT_ATTR_UNDEFINED)
            continue;
        if (attr->ref_name)
            return ot__error(OT_ERR_FORMAT, "has a value and refers to '%s'", attr->ref_name);
        if (attr->kind == OT_ATTR_UNDEFINED)
            attr->kind = kind;
        if (attr->kind != kind)
            return ot__error(OT_ERR_FORMAT, "holds a value of kind %s, but its type is %s",
                             ot__attr_kind_name(kind), ot__attr_kind_name(attr->kind));
    }
    return OT_OK;
}

static int count_fields(ot__bytes bytes, uint32_t number)
{
    ot__walk walk = ot__walk_over(bytes);
    int count = 0;
    ot__bytes inner;

    while (ot__wire_next_of(&walk, number, &inner))
        count++;
    return count;
}

static ot_status pb_read_tensors(ot__reader *reader, ot__bytes bytes, ot_attr *attr,
                                 uint32_t number, int count)
{
    ot__arena *arena = reader->model->arena;
    ot__walk walk = ot__walk_over(bytes);
    ot_tensor **tensors = ot__attr_room(arena, attr, (size_t)count);
    ot__tensor_note *notes = ot__arena_alloc(arena, (size_t)count * sizeof *notes);
    int n = 0;
    ot__bytes inner;

    OT_TRY(ot__made(tensors && notes));
    while (ot__wire_next_of(&walk, number, &inner)) {
        ot__read_tensor read;

        OT_TRY(ot__read_tensor_proto(reader, inner, &read));
        notes[n] = (ot__tensor_note){read.name, read.doc, read.extra};
        tensors[n++] = read.tensor;
    }
    attr->notes = notes;
    return OT_OK;
}

static ot_status read_graphs(ot__reader *reader, ot_graph *parent, ot__bytes bytes, ot_attr *attr,
                             uint32_t number, int count)
{
    ot__walk walk = ot__walk_over(bytes);
    ot_graph **graphs = ot__attr_room(reader->model->arena, attr, (size_t)count);
    int n = 0;
    ot__bytes inner;

    OT_TRY(ot__made(graphs));
    while (ot__wire_next_of(&walk, number, &inner)) {
        graphs[n] = ot__graph_create(reader->model, parent, "");
        OT_TRY(ot__made(graphs[n]));
        OT_TRY(ot__read_graph(reader, inner, graphs[n++]));
    }
    return OT_OK;
}

// Kinds that are never looked into are kept as the fields stand in the file.
static ot_status read_verbatim(ot__reader *reader, ot__bytes bytes, ot_attr *attr, uint32_t number)
{
    ot__parts parts;

    OT_TRY(ot__wire_split(reader->model->arena, bytes, OT_FIELD_BIT(number), 0, &parts));
    attr->bytes.size = parts.kept.size;
    attr->bytes.data = ot__arena_memdup(reader->model->arena, parts.kept.data, parts.kept.size);
    ot__parts_deinit(&parts);
    return ot__made(attr->bytes.data);
}

static ot_status read_parts(ot__reader *reader, ot_graph *graph, ot__bytes bytes, ot_attr *attr)
{
    const uint32_t number = ot__attr_rows[attr->kind].field;
    int count = number ? count_fields(bytes, number) : 0;

    switch (attr->kind) {
    case OT_ATTR_TENSOR:
    case OT_ATTR_GRAPH:
        if (count != 1)
            return ot__error(OT_ERR_FORMAT, "has %d values, expected one", count);
        break;
    case OT_ATTR_TENSORS:
    case OT_ATTR_GRAPHS:
        break;
    default:
        return count && ot__attr_rows[attr->kind].size == 0
                   ? read_verbatim(reader, bytes, attr, number)
                   : OT_OK;
    }
    if (count == 0)
        return OT_OK;
    if (attr->kind == OT_ATTR_TENSOR || attr->kind == OT_ATTR_TENSORS)
        return pb_read_tensors(reader, bytes, attr, number, count);
    return read_graphs(reader, graph, bytes, attr, number, count);
}

static ot_status pb_read_strings(ot__reader *reader, const Onnx__AttributeProto *proto,
                                 ot_attr *attr)
{
    ot__string *strings;

    strings = ot__attr_room(reader->model->arena, attr, proto->n_strings);
    OT_TRY(ot__made(strings));
    for (size_t i = 0; i < proto->n_strings; i++)
        OT_TRY(ot__read_string(reader, proto->strings[i].data, proto->strings[i].len, &strings[i]));
    return OT_OK;
}

static ot_status read_values(ot__reader *reader, const Onnx__AttributeProto *proto, ot_attr *attr)
{
    ot__arena *arena = reader->model->arena;

    if (proto->n_floats > INT32_MAX || proto->n_ints > INT32_MAX || proto->n_strings > INT32_MAX)
        return ot__error(OT_ERR_FORMAT, "has more elements than can be counted");
    attr->f = proto->f;
    attr->i = proto->i;
    switch (attr->kind) {
    case OT_ATTR_STRING:
        return ot__read_string(reader, proto->s.data, proto->s.len, &attr->s);
    case OT_ATTR_FLOATS:
        return ot__made(ot__attr_set_list(arena, attr, proto->floats, proto->n_floats));
    case OT_ATTR_INTS:
        return ot__made(ot__attr_set_list(arena, attr, proto->ints, proto->n_ints));
    case OT_ATTR_STRINGS:
        return pb_read_strings(reader, proto, attr);
    default:
        return OT_OK;
    }
}

static ot_status pb_read_attr(ot__reader *reader, ot_graph *graph, ot__bytes bytes,
                              const Onnx__AttributeProto *proto, ot_attr *attr)
{
    attr->kind = proto->has_type ? (ot_attr_kind)proto->type : OT_ATTR_UNDEFINED;
    if (proto->ref_attr_name && proto->ref_attr_name[0]) {
        attr->ref_name = ot__read_text(reader, proto->ref_attr_name);
        OT_TRY(ot__made(attr->ref_name));
        if (!reader->in_function)
            return ot__error(OT_ERR_FORMAT, "refers to '%s' of a function, but is in none",
                             attr->ref_name);
    }
    if (proto->doc_string && proto->doc_string[0]) {
        attr->doc = ot__read_text(reader, proto->doc_string);
        OT_TRY(ot__made(attr->doc));
    }
    OT_TRY(check_kind(attr, bytes));
    if (attr->ref_name)
        return OT_OK;
    OT_TRY(read_values(reader, proto, attr));
    return read_parts(reader, graph, bytes, attr);
}

ot_status ot__read_attr(ot__reader *reader, ot_graph *graph, ot__bytes bytes, ot_attr *attr)
{
    const uint64_t kept = OT_FIELD_BIT(1) | OT_FIELD_BIT(2) | OT_FIELD_BIT(3) | OT_FIELD_BIT(4) |
                          OT_FIELD_BIT(7) | OT_FIELD_BIT(8) | OT_FIELD_BIT(9) | OT_FIELD_BIT(13) |
                          OT_FIELD_BIT(20) | OT_FIELD_BIT(21);
    const Onnx__AttributeProto *proto;
    uint64_t apart = 0;
    ot__unpacked unpacked;
    ot_status st;

    for (int kind = OT_ATTR_FLOAT; kind < OT_ATTR_KINDS; kind++)
        apart |= OT_FIELD_BIT(ot__attr_rows[kind].field) & ~kept;
    OT_TRY(ot__unpack(reader, &onnx__attribute_proto__descriptor, bytes, kept, apart, &unpacked));
    proto = (const Onnx__AttributeProto *)unpacked.message;
    *attr = (ot_attr){.name = ot__read_text(reader, proto->name), .extra = unpacked.parts.rest};
    st = ot__made(attr->name);
    if (st == OT_OK && !attr->name[0])
        st = ot__error(OT_ERR_FORMAT, "an attribute has no name");
    else if (st == OT_OK)
        st = ot__error_prefix(pb_read_attr(reader, graph, bytes, proto, attr), "attribute '%s'",
                              attr->name);
    ot__unpacked_deinit(&unpacked);
    return st;
}

static ot_status pb_read_attrs(ot__reader *reader, ot_node *node, ot__bytes bytes)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__bytes inner;

    while (ot__wire_next_of(&walk, NODE_ATTRIBUTE, &inner)) {
        ot_attr read, *attr;
        const char *name;

        if (node->n_attrs == OT_MAX_ATTRS)
            return ot__error(OT_ERR_NO_MEMORY, "more than %d attributes", OT_MAX_ATTRS);
        OT_TRY(ot__read_attr(reader, node->graph, inner, &read));
        if (ot__node_attr(node, read.name))
            return ot__error(OT_ERR_FORMAT, "attribute '%s' is given twice", read.name);
        attr = ot__node_add_attr(node, read.name, read.kind);
        OT_TRY(ot__made(attr));
        name = attr->name;
        *attr = read;
        attr->name = name;
    }
    return OT_OK;
}

// ---- nodes ----

ot_status ot__find_node_input(ot_graph *graph, const char *name, ot_value **out)
{
    *out = ot__graph_find_visible(graph, name);
    if (!*out)
        *out = ot__graph_value(graph, name);
    return ot__made(*out);
}

ot_status ot__find_node_output(ot_graph *graph, const char *name, ot_value **out)
{
    const ot_value *value = *out = ot__graph_value(graph, name);

    OT_TRY(ot__made(value));
    if (value->producer)
        return ot__error(OT_ERR_FORMAT, "output '%s' is made by %s already", name,
                         OT_LABEL(value->producer));
    if (value->is_input || value->is_initializer)
        return ot__error(OT_ERR_FORMAT, "output '%s' has the name of an %s", name,
                         value->is_initializer ? "initializer" : "input");
    return OT_OK;
}

ot_status ot__check_node_outputs(const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && node->outputs[i]->i_producer_output != i)
            return ot__error(OT_ERR_FORMAT, "output '%s' is listed twice", node->outputs[i]->name);
    return OT_OK;
}

static ot_status find_ends(ot_graph *graph, char *const *names, size_t n, ot__finding find,
                           ot_value **values)
{
    for (size_t i = 0; i < n; i++)
        if (names[i][0])
            OT_TRY(find(graph, names[i], &values[i]));
    return OT_OK;
}

static ot_status pb_add_node(ot__reader *reader, ot_graph *graph, const Onnx__NodeProto *proto,
                             ot_node **out)
{
    ot_value **inputs = ot__alloc_zero(proto->n_input, sizeof *inputs);
    ot_value **outputs = ot__alloc_zero(proto->n_output, sizeof *outputs);
    ot_status st = ot__made(inputs && outputs);

    *out = NULL;
    OT_THEN(st, find_ends(graph, proto->input, proto->n_input, ot__find_node_input, inputs));
    OT_THEN(st, find_ends(graph, proto->output, proto->n_output, ot__find_node_output, outputs));
    if (st == OT_OK) {
        *out = ot__graph_add_node(graph, proto->domain ? proto->domain : "",
                                  proto->op_type ? proto->op_type : "", proto->name, inputs,
                                  (int)proto->n_input, outputs, (int)proto->n_output);
        st = ot__made(*out);
    }
    ot__free(inputs);
    ot__free(outputs);
    if (st == OT_OK) {
        (*out)->overload = ot__read_text(reader, proto->overload);
        (*out)->doc = ot__read_text(reader, proto->doc_string);
        st = ot__made((*out)->overload && (*out)->doc);
    }
    return st;
}

static ot_status pb_read_node(ot__reader *reader, ot_graph *graph, ot__bytes bytes,
                              const ot__unpacked *unpacked)
{
    const Onnx__NodeProto *proto = (const Onnx__NodeProto *)unpacked->message;
    ot_node *node;

    if (!proto->op_type || !proto->op_type[0])
        return ot__error(OT_ERR_FORMAT, "no op_type");
    if (proto->n_input > INT32_MAX || proto->n_output > INT32_MAX)
        return ot__error(OT_ERR_FORMAT, "%zu inputs and %zu outputs", proto->n_input,
                         proto->n_output);
    OT_TRY(pb_add_node(reader, graph, proto, &node));
    node->extra = unpacked->parts.rest;
    OT_TRY(ot__check_node_outputs(node));
    OT_TRY(ot__read_metadata(reader, bytes, NODE_METADATA, &node->metadata));
    return pb_read_attrs(reader, node, bytes);
}

ot_status ot__read_node(ot__reader *reader, ot_graph *graph, ot__bytes bytes)
{
    const uint64_t kept = OT_FIELD_BIT(1) | OT_FIELD_BIT(2) | OT_FIELD_BIT(3) | OT_FIELD_BIT(4) |
                          OT_FIELD_BIT(6) | OT_FIELD_BIT(7) | OT_FIELD_BIT(8);
    const Onnx__NodeProto *proto;
    ot__unpacked unpacked;
    ot_status st;

    OT_TRY(ot__unpack(reader, &onnx__node_proto__descriptor, bytes, kept,
                      OT_FIELD_BIT(NODE_ATTRIBUTE), &unpacked));
    proto = (const Onnx__NodeProto *)unpacked.message;
    st = pb_read_node(reader, graph, bytes, &unpacked);
    if (st != OT_OK && proto->name && proto->name[0])
        st = ot__error_prefix(st, "node '%s'", proto->name);
    else if (st != OT_OK)
        st = ot__error_prefix(st, "%s node %d", proto->op_type ? proto->op_type : "",
                              graph->n_nodes);
    ot__unpacked_deinit(&unpacked);
    return st;
}
