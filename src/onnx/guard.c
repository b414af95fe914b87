// SPDX-License-Identifier: Apache-2.0
// Untrusted bytes: walked by the schema before anything is made of them.
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx/limits.h"
#include "onnx/protobuf/wire.h"

static size_t memory_for(size_t n_bytes, size_t per_byte, size_t slack)
{
    return n_bytes > (SIZE_MAX - slack) / per_byte ? SIZE_MAX : n_bytes * per_byte + slack;
}

ot__limits ot__limits_of(const ot_model_options *options, size_t n_bytes)
{
    const int64_t default_nodes = 4000000;
    // What is read takes about its bytes; but a node with its output, which may be written in ten
    // ("a=Neg(b)"), takes some 600. That much only while the process may take it.
    const size_t slack = (size_t)64 << 20, usual = 4, most = 64;
    ot__limits limits = {.depth = 64, .nodes = default_nodes};

    limits.memory = OT_MIN(memory_for(n_bytes, most, slack), ot__memory_left(0));
    limits.memory = OT_MAX(limits.memory, memory_for(n_bytes, usual, slack));
    if (options && options->max_depth > 0)
        limits.depth = options->max_depth;
    if (options && options->max_nodes > 0)
        limits.nodes = options->max_nodes;
    if (options && options->max_memory > 0)
        limits.memory = options->max_memory;
    return limits;
}

typedef struct guard {
    const uint8_t *begin;
    ot__limits limits;
    int64_t n_nodes, n_values, n_attrs;
} guard;

static size_t guard_offset(const guard *g, const void *at)
{
    return (size_t)((const uint8_t *)at - g->begin);
}

// The wire type a field's single values have.
static unsigned wire_type_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return OT_WIRE_FIXED32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return OT_WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return OT_WIRE_BYTES;
    default:
        return OT_WIRE_VARINT;
    }
}

static bool is_packed(const ProtobufCFieldDescriptor *known, const ot__field *field)
{
    return known->label == PROTOBUF_C_LABEL_REPEATED && field->wire_type == OT_WIRE_BYTES &&
           wire_type_of(known) != OT_WIRE_BYTES;
}

static ot_status check_packed(const guard *g, const ProtobufCFieldDescriptor *known,
                              const ot__field *field)
{
    const uint8_t *at = field->data, *end = field->data + field->size;
    unsigned type = wire_type_of(known);
    size_t width = type == OT_WIRE_FIXED32 ? 4 : type == OT_WIRE_FIXED64 ? 8 : 1;
    uint64_t value;

    if (field->size % width != 0)
        return ot__error(OT_ERR_FORMAT,
                         "%s at byte %zu has %zu bytes, which is not a multiple of %zu",
                         known->name, guard_offset(g, field->start), field->size, width);
    while (width == 1 && at < end)
        if (!ot__wire_varint(&at, end, &value))
            return ot__error(OT_ERR_FORMAT, "%s has a malformed number at byte %zu", known->name,
                             guard_offset(g, at));
    return OT_OK;
}

ot_status ot__count_one(const ot__limits *limits, int64_t *counter, const char *what)
{
    if (++*counter > limits->nodes)
        return ot__error(OT_ERR_NO_MEMORY, "more than %" PRId64 " %s", limits->nodes, what);
    return OT_OK;
}

// Nodes, values and attributes: what the limit on counts is about.
static ot_status count_field(guard *g, const ProtobufCMessageDescriptor *message,
                             const ProtobufCFieldDescriptor *known)
{
    const void *inner = known->type == PROTOBUF_C_TYPE_MESSAGE ? known->descriptor : NULL;

    if (inner == &onnx__node_proto__descriptor)
        return ot__count_one(&g->limits, &g->n_nodes, "nodes");
    if (inner == &onnx__attribute_proto__descriptor)
        return ot__count_one(&g->limits, &g->n_attrs, "attributes");
    if (inner == &onnx__value_info_proto__descriptor || inner == &onnx__tensor_proto__descriptor ||
        (message == &onnx__node_proto__descriptor && known->type == PROTOBUF_C_TYPE_STRING &&
         known->label == PROTOBUF_C_LABEL_REPEATED))
        return ot__count_one(&g->limits, &g->n_values, "values");
    return OT_OK;
}

static ot_status check_message(guard *g, const ProtobufCMessageDescriptor *message, ot__bytes bytes,
                               int depth);

static ot_status check_field(guard *g, const ProtobufCMessageDescriptor *message,
                             const ot__field *field, int depth)
{
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(message, field->number);

    if (!known)
        return OT_OK;
    if (is_packed(known, field))
        return check_packed(g, known, field);
    if (field->wire_type != wire_type_of(known))
        return ot__error(OT_ERR_FORMAT, "%s of %s at byte %zu has wire type %u, expected %u",
                         known->name, message->short_name, guard_offset(g, field->start),
                         field->wire_type, wire_type_of(known));
    OT_TRY(count_field(g, message, known));
    if (known->type == PROTOBUF_C_TYPE_STRING && memchr(field->data, 0, field->size))
        return ot__error(OT_ERR_FORMAT, "%s of %s at byte %zu has a zero byte in its text",
                         known->name, message->short_name, guard_offset(g, field->start));
    if (known->type != PROTOBUF_C_TYPE_MESSAGE)
        return OT_OK;
    return check_message(g, known->descriptor, (ot__bytes){field->data, field->size}, depth + 1);
}

static ot_status check_message(guard *g, const ProtobufCMessageDescriptor *message, ot__bytes bytes,
                               int depth)
{
    ot__walk walk = ot__walk_over(bytes);
    ot__field field;

    if (depth > g->limits.depth)
        return ot__error(OT_ERR_NO_MEMORY, "messages are nested more than %d deep at byte %zu",
                         g->limits.depth, guard_offset(g, walk.at));
    while (ot__wire_next(&walk, &field))
        OT_TRY(check_field(g, message, &field, depth));
    if (walk.at != walk.end)
        return ot__error(OT_ERR_FORMAT, "malformed or truncated field of %s at byte %zu of %zu",
                         message->short_name, guard_offset(g, walk.at), guard_offset(g, walk.end));
    return OT_OK;
}

ot_status ot__onnx_guard(const void *bytes, size_t n_bytes, const ot_model_options *options,
                         const char *where)
{
    guard g = {.begin = bytes, .limits = ot__limits_of(options, n_bytes)};
    return ot__error_prefix(
        check_message(&g, &onnx__model_proto__descriptor, (ot__bytes){bytes, n_bytes}, 1), "%s",
        where);
}
