// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, written (wire_write.c). Part of the interface of `base`.
#ifndef OT_BASE_BASE_WIRE_H
#define OT_BASE_BASE_WIRE_H

#include "base/base.h"

enum { OT_WIRE_VARINT = 0, OT_WIRE_FIXED64 = 1, OT_WIRE_BYTES = 2, OT_WIRE_FIXED32 = 5 };

// Where bytes go. Messages are written twice: first counted, for their length, then in earnest.
typedef struct ot__wire {
    bool is_counting;
    uint64_t count; // bytes so far
    ot_status (*write)(void *context, const void *bytes, size_t n_bytes);
    void *context;
    ot_status status;  // sticky: after a failure nothing is written
    const void *extra; // what the caller's messages look up
} ot__wire;

typedef void (*ot__wire_message)(ot__wire *wire, const void *object);

ot__wire ot__wire_to(ot__buf *buf);
void ot__wire_raw(ot__wire *wire, const void *bytes, size_t n_bytes);
void ot__wire_put_tag(ot__wire *wire, uint32_t number, unsigned wire_type);
void ot__wire_put_int(ot__wire *wire, uint32_t number, int64_t value);
void ot__wire_put_double(ot__wire *wire, uint32_t number, double value);
void ot__wire_put_float(ot__wire *wire, uint32_t number, float value);
void ot__wire_put_bytes(ot__wire *wire, uint32_t number, const void *bytes, size_t n_bytes);
void ot__wire_put_text(ot__wire *wire, uint32_t number,
                       const char *text); // nothing for NULL and ""
void ot__wire_put_name(ot__wire *wire, uint32_t number, const char *text); // "" too
void ot__wire_put_message(ot__wire *wire, uint32_t number, ot__wire_message message,
                          const void *object);

#endif
