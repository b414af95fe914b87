// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format: fields in, fields out.
#ifndef OT_ONNX_WIRE_H
#define OT_ONNX_WIRE_H

#include "onnx/onnx.h"

enum { OT_WIRE_VARINT = 0, OT_WIRE_FIXED64 = 1, OT_WIRE_BYTES = 2, OT_WIRE_FIXED32 = 5 };

// ---- reading (wire.c) ----

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

// ---- writing (wire_write.c) ----

// Where bytes go. Messages are written twice: first counted, for their length, then in earnest.
typedef struct ot__wire {
    bool is_counting;
    uint64_t count; // bytes so far
    ot_status (*write)(void *context, const void *bytes, size_t n_bytes);
    void *context;
    ot_status status;                       // sticky: after a failure nothing is written
    const struct ot__placement *placements; // initializers kept in another file; sorted by value
    int n_placements;
    const char *location; // that file's name
} ot__wire;

typedef void (*ot__wire_message)(ot__wire *wire, const void *object);

ot__wire ot__wire_to(ot__buf *buf);
void ot__wire_raw(ot__wire *wire, const void *bytes, size_t n_bytes);
void ot__wire_put_tag(ot__wire *wire, uint32_t number, unsigned wire_type);
void ot__wire_put_int(ot__wire *wire, uint32_t number, int64_t value);
void ot__wire_put_float(ot__wire *wire, uint32_t number, float value);
void ot__wire_put_bytes(ot__wire *wire, uint32_t number, const void *bytes, size_t n_bytes);
void ot__wire_put_text(ot__wire *wire, uint32_t number,
                       const char *text); // nothing for NULL and ""
void ot__wire_put_name(ot__wire *wire, uint32_t number, const char *text); // "" too
void ot__wire_put_message(ot__wire *wire, uint32_t number, ot__wire_message message,
                          const void *object);

#endif
