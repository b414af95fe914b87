// FlatBuffers tables as the checkpoint format uses them: bounds-checked reading, front-to-back
// writing. Private to `ckpt`.
#ifndef OT_CKPT_FLATBUF_H
#define OT_CKPT_FLATBUF_H

#include "base/base.h"

// ---- reading: every access is checked against the buffer; the first error stays, later reads give
// 0 ----

typedef struct ot__fb {
    const uint8_t *bytes;
    size_t size;
    const char *where; // file name for messages
    ot_status status;
} ot__fb;
typedef struct ot__fb_table {
    size_t position, vtable, vtable_size, size;
} ot__fb_table;
typedef struct ot__fb_vector {
    size_t position; // of element 0
    size_t count;
} ot__fb_vector;

void ot__fb_fail(ot__fb *fb, const char *format, ...) OT_PRINTF(2, 3);
ot__fb_table ot__fb_root(ot__fb *fb, const char identifier[4]);
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

// ---- writing: offsets are patched once their target has been written ----

typedef struct ot__fb_field {
    int n_bytes;     // 0: absent; 1, 4, 8: scalar; offsets are 4
    uint64_t value;  // bits of a scalar
    size_t position; // result: where it was written, for ot__fb_patch
} ot__fb_field;
void ot__fb_align(ot__buf *buf, size_t alignment,
                  size_t remainder); // length % alignment == remainder
// Writes vtable and table; returns the table's position, 8-aligned.
size_t ot__fb_write_table(ot__buf *buf, ot__fb_field *fields, int n_fields);
void ot__fb_patch(ot__buf *buf, size_t field_position, size_t target);
size_t ot__fb_write_string(ot__buf *buf, const char *text);
size_t
ot__fb_write_offsets(ot__buf *buf,
                     size_t count); // vector of offsets, 0 until patched; element i at +4+4*i
size_t ot__fb_write_bytes(ot__buf *buf, const void *bytes, size_t n_bytes);
size_t ot__fb_write_i64s(ot__buf *buf, const int64_t *values, int n);

#endif
