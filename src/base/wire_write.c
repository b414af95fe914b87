// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, written.
#include <string.h>

#include "base/base.h"

static ot_status wire_append(void *context, const void *bytes, size_t n_bytes)
{
    ot__buf_append(context, bytes, n_bytes);
    return ot__buf_status(context);
}

ot__wire ot__wire_to(ot__buf *buf)
{
    return (ot__wire){.write = wire_append, .context = buf};
}

void ot__wire_raw(ot__wire *wire, const void *bytes, size_t n_bytes)
{
    wire->count += n_bytes;
    if (!wire->is_counting && wire->status == OT_OK && n_bytes > 0)
        wire->status = wire->write(wire->context, bytes, n_bytes);
}

static void put_varint(ot__wire *wire, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;

    while (value >= 0x80) {
        bytes[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[n++] = (uint8_t)value;
    ot__wire_raw(wire, bytes, n);
}

void ot__wire_put_tag(ot__wire *wire, uint32_t number, unsigned wire_type)
{
    put_varint(wire, (uint64_t)number << 3 | wire_type);
}

void ot__wire_put_int(ot__wire *wire, uint32_t number, int64_t value)
{
    ot__wire_put_tag(wire, number, OT_WIRE_VARINT);
    put_varint(wire, (uint64_t)value);
}

void ot__wire_put_double(ot__wire *wire, uint32_t number, double value)
{
    ot__wire_put_tag(wire, number, OT_WIRE_FIXED64);
    ot__wire_raw(wire, &value, sizeof value);
}

void ot__wire_put_float(ot__wire *wire, uint32_t number, float value)
{
    ot__wire_put_tag(wire, number, OT_WIRE_FIXED32);
    ot__wire_raw(wire, &value, sizeof value);
}

void ot__wire_put_bytes(ot__wire *wire, uint32_t number, const void *bytes, size_t n_bytes)
{
    ot__wire_put_tag(wire, number, OT_WIRE_BYTES);
    put_varint(wire, n_bytes);
    ot__wire_raw(wire, bytes, n_bytes);
}

void ot__wire_put_name(ot__wire *wire, uint32_t number, const char *text)
{
    ot__wire_put_bytes(wire, number, text, strlen(text));
}

void ot__wire_put_text(ot__wire *wire, uint32_t number, const char *text)
{
    if (text && *text)
        ot__wire_put_name(wire, number, text);
}

void ot__wire_put_message(ot__wire *wire, uint32_t number, ot__wire_message message,
                          const void *object)
{
    ot__wire counting = *wire;

    // While counting, the message counts itself and its length follows: counting is one walk
    // however deep it nests.
    counting.is_counting = true;
    counting.count = 0;
    message(&counting, object);
    ot__wire_put_tag(wire, number, OT_WIRE_BYTES);
    put_varint(wire, counting.count);
    if (wire->is_counting)
        wire->count += counting.count;
    else
        message(wire, object);
}
