// SPDX-License-Identifier: Apache-2.0
// FlatBuffers tables, as checkpoints and .ort models use them: bounds-checked reading,
// front-to-back writing (flatbuf.c). Part of the interface of `base`.
#ifndef OT_BASE_BASE_FLATBUF_H
#define OT_BASE_BASE_FLATBUF_H

#include "base/base.h"

// ---- reading: every access is checked against the buffer; the first error stays, later reads give
// 0 ----

typedef struct ot__fb {
    const uint8_t *bytes;
    size_t size;
    const char *where; // file name for messages; NULL: the caller puts it before them
    ot_status status;
    uint64_t
        n_text; // bytes of the strings read so far: a small file may have one of them everywhere
} ot__fb;
typedef struct ot__fb_table {
    size_t position, vtable, vtable_size, size;
} ot__fb_table;
typedef struct ot__fb_vector {
    size_t position; // of element 0
    size_t count;
} ot__fb_vector;

void ot__fb_fail(ot__fb *fb, const char *format, ...) OT_PRINTF(2, 3);
// `what` the identifier stands for, for messages: "checkpoint".
ot__fb_table ot__fb_root(ot__fb *fb, const char identifier[4], const char *what);
bool ot__fb_has(ot__fb *fb, const ot__fb_table *table, int slot);
int64_t ot__fb_int(ot__fb *fb, const ot__fb_table *table, int slot, int n_bytes, int64_t otherwise);
float ot__fb_float(ot__fb *fb, const ot__fb_table *table, int slot);
ot__fb_table ot__fb_subtable(ot__fb *fb, const ot__fb_table *table, int slot);
ot__fb_vector ot__fb_subvector(ot__fb *fb, const ot__fb_table *table, int slot,
                               size_t element_size);
// NUL-terminated, inside the buffer; NULL on error or when absent.
const char *ot__fb_string(ot__fb *fb, const ot__fb_table *table, int slot);
ot__fb_table ot__fb_element(ot__fb *fb, ot__fb_vector vector,
                            size_t index); // of a vector of tables
// Takes the first one off a vector of tables. False at the end, or after an error.
bool ot__fb_next(ot__fb *fb, ot__fb_vector *vector, ot__fb_table *out);
// Of a vector of strings: as ot__fb_string(), or as bytes, which may hold zeros.
const char *ot__fb_string_element(ot__fb *fb, ot__fb_vector vector, size_t index);
ot__fb_vector ot__fb_bytes_element(ot__fb *fb, ot__fb_vector vector, size_t index);

// ---- writing: offsets are patched once their target has been written ----

typedef struct ot__fb_field {
    int n_bytes;      // 0: absent; 1, 4, 8: scalar; offsets are 4
    uint64_t value;   // bits of a scalar
    const char *text; // what the field leads to; NULL: no text, or an absent one
    size_t position;  // result: where it was written, for ot__fb_patch
} ot__fb_field;
// A text that is left out when there is none.
static inline const char *ot__fb_given(const char *text)
{
    return text && text[0] ? text : NULL;
}
void ot__fb_align(ot__buf *buf, size_t alignment,
                  size_t remainder); // length % alignment == remainder
// Writes vtable and table, then the strings in the order of their fields; returns the table's
// position, 8-aligned.
size_t ot__fb_write_table(ot__buf *buf, ot__fb_field *fields, int n_fields);
// The same in two steps, for what stands between them.
size_t ot__fb_begin_table(ot__buf *buf, ot__fb_field *fields, int n_fields);
void ot__fb_write_strings(ot__buf *buf, const ot__fb_field *fields, int n_fields);
void ot__fb_patch(ot__buf *buf, size_t field_position, size_t target);
size_t ot__fb_write_string(ot__buf *buf, const char *text);
size_t ot__fb_write_text(ot__buf *buf, const void *text, size_t length); // may hold zeros
size_t
ot__fb_write_offsets(ot__buf *buf,
                     size_t count); // vector of offsets, 0 until patched; element i at +4+4*i
size_t ot__fb_write_bytes(ot__buf *buf, const void *bytes, size_t n_bytes);
size_t ot__fb_write_i64s(ot__buf *buf, const int64_t *values, int n);
// A vector of 4-byte numbers, or of structs of them: its head, then each number.
size_t ot__fb_write_count(ot__buf *buf, size_t count);
void ot__fb_write_word(ot__buf *buf, uint32_t word);

#endif
