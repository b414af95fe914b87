// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, read.
#include <string.h>

#include "onnx/protobuf/wire.h"

bool ot__wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    const uint8_t *p = *at;

    *value = 0;
    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        uint8_t byte = *p++;

        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *at = p;
            return true;
        }
    }
    return false;
}

bool ot__wire_next(ot__walk *walk, ot__field *field)
{
    const uint8_t *p = walk->at, *end = walk->end;
    uint64_t tag, value, size;

    if (p == end || !ot__wire_varint(&p, end, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    *field = (ot__field){.number = (uint32_t)(tag >> 3), .wire_type = tag & 7, .start = walk->at};
    field->data = p;
    switch (field->wire_type) {
    case OT_WIRE_VARINT:
        if (!ot__wire_varint(&p, end, &value))
            return false;
        size = (uint64_t)(p - field->data);
        break;
    case OT_WIRE_FIXED64:
        size = 8;
        break;
    case OT_WIRE_FIXED32:
        size = 4;
        break;
    case OT_WIRE_BYTES:
        if (!ot__wire_varint(&p, end, &size))
            return false;
        field->data = p;
        break;
    default: // groups, which ONNX never had
        return false;
    }
    if (size > (uint64_t)(end - field->data))
        return false;
    field->size = (size_t)size;
    walk->at = field->data + size;
    field->total = (size_t)(walk->at - field->start);
    return true;
}

bool ot__wire_next_of(ot__walk *walk, uint32_t number, ot__bytes *out)
{
    ot__field field;

    while (ot__wire_next(walk, &field)) {
        if (field.number != number)
            continue;
        *out = (ot__bytes){field.data, field.size};
        return true;
    }
    return false;
}

// Bytes gathered from a message; as long as they lie together they are only pointed at.
typedef struct gathering {
    ot__bytes *run;
    ot__buf *storage;
} gathering;

static void gather_wire(gathering *g, const ot__field *field)
{
    if (g->run->size == 0)
        g->run->data = field->start;
    else if (g->storage->length == 0 && g->run->data + g->run->size != field->start)
        ot__buf_append(g->storage, g->run->data, g->run->size);
    if (g->storage->length > 0)
        ot__buf_append(g->storage, field->start, field->total);
    g->run->size += field->total;
}

static ot_status finish_wire(gathering *g)
{
    if (g->storage->length > 0 || g->storage->failed)
        g->run->data = (const uint8_t *)g->storage->data;
    return ot__buf_status(g->storage);
}

ot_status ot__wire_split(ot__arena *arena, ot__bytes message, uint64_t kept, uint64_t apart,
                         ot__parts *parts)
{
    ot__buf rest_storage = {0};
    gathering to_keep = {&parts->kept, &parts->kept_storage},
              to_pass = {&parts->rest, &rest_storage};
    ot__walk walk = ot__walk_over(message);
    ot__field field;
    ot_status st;

    *parts = (ot__parts){0};
    while (ot__wire_next(&walk, &field)) {
        uint64_t bit = field.number < 64 ? OT_FIELD_BIT(field.number) : 0;

        if (kept & bit)
            gather_wire(&to_keep, &field);
        else if (!(apart & bit))
            gather_wire(&to_pass, &field);
    }
    st = finish_wire(&to_keep);
    OT_THEN(st, finish_wire(&to_pass));
    if (st == OT_OK && rest_storage.length > 0) {
        parts->rest.data = ot__arena_memdup(arena, rest_storage.data, rest_storage.length);
        st = ot__made(parts->rest.data);
    }
    ot__buf_deinit(&rest_storage);
    if (st != OT_OK)
        ot__parts_deinit(parts);
    return st;
}

void ot__parts_deinit(ot__parts *parts)
{
    ot__buf_deinit(&parts->kept_storage);
    *parts = (ot__parts){0};
}
