// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, read; base_wire.h has how it is written.
#ifndef OT_ONNX_WIRE_H
#define OT_ONNX_WIRE_H

#include "onnx/onnx.h"

// One field. `data` is what stands behind the tag: of OT_WIRE_BYTES the bytes without their length.
typedef struct ot__field {
    uint32_t number;
    unsigned wire_type;
    const uint8_t *data;
    size_t size;
    const uint8_t *start; // the whole field with its tag
    size_t total;
} ot__field;

typedef struct ot__walk { // over the fields of a message
    const uint8_t *at, *end;
} ot__walk;
static inline ot__walk ot__walk_over(ot__bytes message)
{
    return (ot__walk){message.data, message.size ? message.data + message.size : message.data};
}
// The next field: false at the end, or with walk->at left before it when the field is malformed.
bool ot__wire_next(ot__walk *walk, ot__field *field);
// The next field of that number.
bool ot__wire_next_of(ot__walk *walk, uint32_t number, ot__bytes *out);
// False when malformed or longer than 64 bits.
bool ot__wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);

#define OT_FIELD_BIT(number) (UINT64_C(1) << (number))

// A message taken apart: fields in the mask `kept`, for protobuf-c; fields in the mask `apart`,
// which the caller walks itself; all others, to be passed through.
typedef struct ot__parts {
    ot__bytes kept;
    ot__bytes rest;       // in the arena or in the message
    ot__buf kept_storage; // used when the kept fields do not lie together
} ot__parts;
ot_status ot__wire_split(ot__arena *arena, ot__bytes message, uint64_t kept, uint64_t apart,
                         ot__parts *parts);
void ot__parts_deinit(ot__parts *parts);

#endif
