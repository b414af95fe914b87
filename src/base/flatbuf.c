// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <string.h>

// ---- reading ----

void ot__fb_fail(ot__fb *fb, const char *format, ...)
{
    va_list args;

    if (fb->status != OT_OK)
        return;
    va_start(args, format);
    fb->status = ot__error_v(OT_ERR_FORMAT, format, args);
    va_end(args);
    if (fb->where)
        ot__error_prefix(fb->status, "%s", fb->where);
}

// A little-endian unsigned number of n_bytes at `position`; 0 and an error when it leaves the
// buffer.
static uint64_t read_uint(ot__fb *fb, size_t position, size_t n_bytes)
{
    uint64_t value = 0;

    if (fb->status != OT_OK)
        return 0;
    if (position > fb->size || n_bytes > fb->size - position) {
        ot__fb_fail(fb, "needs bytes %zu to %zu of %zu", position, position + n_bytes, fb->size);
        return 0;
    }
    for (size_t i = 0; i < n_bytes; i++)
        value |= (uint64_t)fb->bytes[position + i] << (8 * i);
    return value;
}

// Where the offset at `position` points: forward, inside the buffer.
static size_t fb_follow(ot__fb *fb, size_t position)
{
    size_t offset = (size_t)read_uint(fb, position, 4);

    if (fb->status != OT_OK)
        return 0;
    if (offset == 0 || offset > fb->size - position) {
        ot__fb_fail(fb, "offset %zu at byte %zu leaves the %zu bytes of the file", offset, position,
                    fb->size);
        return 0;
    }
    return position + offset;
}

static ot__fb_table table_at(ot__fb *fb, size_t position)
{
    ot__fb_table table = {0};
    int64_t vtable;

    if (fb->status != OT_OK)
        return table;
    if (position % 4 != 0) {
        ot__fb_fail(fb, "table at byte %zu is not aligned", position);
        return table;
    }
    vtable = (int64_t)position - (int32_t)(uint32_t)read_uint(fb, position, 4);
    if (vtable < 0 || (uint64_t)vtable > fb->size || vtable % 2 != 0) {
        ot__fb_fail(fb, "table at byte %zu has its field list outside the file", position);
        return table;
    }
    table.position = position;
    table.vtable = (size_t)vtable;
    table.vtable_size = (size_t)read_uint(fb, table.vtable, 2);
    table.size = (size_t)read_uint(fb, table.vtable + 2, 2);
    if (fb->status == OT_OK && (table.vtable_size < 4 || table.vtable_size % 2 != 0 ||
                                table.vtable_size > fb->size - table.vtable || table.size < 4 ||
                                table.size > fb->size - position))
        ot__fb_fail(fb, "table at byte %zu has a field list that leaves the file", position);
    return table;
}

ot__fb_table ot__fb_root(ot__fb *fb, const char identifier[4], const char *what)
{
    if (fb->size < 8)
        ot__fb_fail(fb, "has %zu bytes, too few for a %s", fb->size, what);
    else if (memcmp(fb->bytes + 4, identifier, 4) != 0)
        ot__fb_fail(fb, "is not a %s: bytes 4 to 7 are not '%.4s'", what, identifier);
    return table_at(fb, fb_follow(fb, 0));
}

// Position of a field of n_bytes, 0 when absent.
static size_t field_at(ot__fb *fb, const ot__fb_table *table, int slot, size_t n_bytes)
{
    size_t entry = 4 + 2 * (size_t)slot, offset;

    if (fb->status != OT_OK || entry + 2 > table->vtable_size)
        return 0;
    offset = (size_t)read_uint(fb, table->vtable + entry, 2);
    if (offset == 0)
        return 0;
    if (offset < 4 || offset + n_bytes > table->size) {
        ot__fb_fail(fb, "field %d of the table at byte %zu lies outside it", slot, table->position);
        return 0;
    }
    return table->position + offset;
}

bool ot__fb_has(ot__fb *fb, const ot__fb_table *table, int slot)
{
    return field_at(fb, table, slot, 1) != 0;
}

int64_t ot__fb_int(ot__fb *fb, const ot__fb_table *table, int slot, int n_bytes, int64_t otherwise)
{
    size_t position = field_at(fb, table, slot, (size_t)n_bytes);
    uint64_t bits;

    if (position == 0)
        return otherwise;
    bits = read_uint(fb, position, (size_t)n_bytes);
    return n_bytes == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

float ot__fb_float(ot__fb *fb, const ot__fb_table *table, int slot)
{
    size_t position = field_at(fb, table, slot, 4);
    uint32_t bits = position ? (uint32_t)read_uint(fb, position, 4) : 0;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

ot__fb_table ot__fb_subtable(ot__fb *fb, const ot__fb_table *table, int slot)
{
    size_t position = field_at(fb, table, slot, 4);

    if (position == 0)
        return (ot__fb_table){0};
    return table_at(fb, fb_follow(fb, position));
}

static ot__fb_vector vector_at(ot__fb *fb, size_t position, size_t element_size)
{
    ot__fb_vector vector = {0};

    vector.count = (size_t)read_uint(fb, position, 4);
    vector.position = position + 4;
    if (fb->status == OT_OK && vector.count > (fb->size - vector.position) / element_size)
        ot__fb_fail(fb, "list of %zu elements at byte %zu leaves the %zu bytes of the file",
                    vector.count, position, fb->size);
    if (fb->status != OT_OK)
        vector.count = 0;
    return vector;
}

ot__fb_vector ot__fb_subvector(ot__fb *fb, const ot__fb_table *table, int slot, size_t element_size)
{
    size_t position = field_at(fb, table, slot, 4);

    if (position == 0)
        return (ot__fb_vector){0};
    return vector_at(fb, fb_follow(fb, position), element_size);
}

static const char *string_at(ot__fb *fb, size_t position)
{
    // Writers share names, but a reference takes four bytes, and names are short.
    const uint64_t shared_per_byte = 64, slack = (uint64_t)64 << 20;
    ot__fb_vector vector = vector_at(fb, position, 1);
    const char *text;

    fb->n_text += vector.count;
    if (fb->n_text > fb->size * shared_per_byte + slack)
        ot__fb_fail(fb, "text of %zu bytes at byte %zu is used too often", vector.count, position);
    if (fb->status != OT_OK)
        return NULL;
    text = (const char *)fb->bytes + vector.position;
    if (vector.count >= fb->size - vector.position || text[vector.count] != '\0' ||
        memchr(text, '\0', vector.count)) {
        ot__fb_fail(fb, "text at byte %zu does not end with its length of %zu", position,
                    vector.count);
        return NULL;
    }
    return text;
}

const char *ot__fb_string(ot__fb *fb, const ot__fb_table *table, int slot)
{
    size_t position = field_at(fb, table, slot, 4);

    return position ? string_at(fb, fb_follow(fb, position)) : NULL;
}

const char *ot__fb_string_element(ot__fb *fb, ot__fb_vector vector, size_t index)
{
    size_t position = fb_follow(fb, vector.position + 4 * index);

    return position ? string_at(fb, position) : NULL;
}

ot__fb_vector ot__fb_bytes_element(ot__fb *fb, ot__fb_vector vector, size_t index)
{
    size_t position = fb_follow(fb, vector.position + 4 * index);

    return position ? vector_at(fb, position, 1) : (ot__fb_vector){0};
}

ot__fb_table ot__fb_element(ot__fb *fb, ot__fb_vector vector, size_t index)
{
    return table_at(fb, fb_follow(fb, vector.position + 4 * index));
}

bool ot__fb_next(ot__fb *fb, ot__fb_vector *vector, ot__fb_table *out)
{
    if (fb->status != OT_OK || vector->count == 0)
        return false;
    *out = ot__fb_element(fb, *vector, 0);
    vector->position += 4;
    vector->count--;
    return fb->status == OT_OK;
}

// ---- writing ----

void ot__fb_align(ot__buf *buf, size_t alignment, size_t remainder)
{
    static const char zeros[16] = {0};
    size_t pad = (alignment + remainder - buf->length % alignment) % alignment;

    ot__buf_append(buf, zeros, pad);
}

static void append_uint(ot__buf *buf, uint64_t value, int n_bytes)
{
    uint8_t bytes[8];

    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    ot__buf_append(buf, bytes, (size_t)n_bytes);
}

static void put_uint(ot__buf *buf, size_t position, uint64_t value, int n_bytes)
{
    if (buf->failed)
        return;
    for (int i = 0; i < n_bytes; i++)
        buf->data[position + (size_t)i] = (char)(uint8_t)(value >> (8 * i));
}

size_t ot__fb_begin_table(ot__buf *buf, ot__fb_field *fields, int n_fields)
{
    int n_slots = n_fields;
    size_t size = 4, vtable_size, vtable, table;

    for (int i = 0; i < n_fields; i++)
        if (fields[i].text)
            fields[i].n_bytes = 4;
    while (n_slots > 0 && fields[n_slots - 1].n_bytes == 0)
        n_slots--;
    vtable_size = 4 + 2 * (size_t)n_slots;
    for (int i = 0; i < n_slots; i++)
        if (fields[i].n_bytes) {
            size_t align = (size_t)fields[i].n_bytes;
            size = (size + align - 1) / align * align;
            fields[i].position = size; // in the table for now
            size += align;
        }
    ot__fb_align(buf, 8, (8 - vtable_size % 8) % 8);
    vtable = buf->length;
    append_uint(buf, vtable_size, 2);
    append_uint(buf, size, 2);
    for (int i = 0; i < n_slots; i++)
        append_uint(buf, fields[i].n_bytes ? fields[i].position : 0, 2);
    table = buf->length;
    append_uint(buf, table - vtable, 4);
    while (!buf->failed && buf->length < table + size)
        append_uint(buf, 0, 1);
    for (int i = 0; i < n_slots; i++)
        if (fields[i].n_bytes) {
            fields[i].position += table;
            put_uint(buf, fields[i].position, fields[i].value, fields[i].n_bytes);
        }
    return table;
}

void ot__fb_write_strings(ot__buf *buf, const ot__fb_field *fields, int n_fields)
{
    for (int i = 0; i < n_fields; i++)
        if (fields[i].text)
            ot__fb_patch(buf, fields[i].position, ot__fb_write_string(buf, fields[i].text));
}

size_t ot__fb_write_table(ot__buf *buf, ot__fb_field *fields, int n_fields)
{
    const size_t position = ot__fb_begin_table(buf, fields, n_fields);

    ot__fb_write_strings(buf, fields, n_fields);
    return position;
}

void ot__fb_patch(ot__buf *buf, size_t field_position, size_t target)
{
    put_uint(buf, field_position, target - field_position, 4);
}

size_t ot__fb_write_text(ot__buf *buf, const void *text, size_t length)
{
    size_t position = ot__fb_write_count(buf, length);

    ot__buf_append(buf, text, length);
    ot__buf_append(buf, "", 1);
    return position;
}

size_t ot__fb_write_string(ot__buf *buf, const char *text)
{
    return ot__fb_write_text(buf, text, strlen(text));
}

size_t ot__fb_write_offsets(ot__buf *buf, size_t count)
{
    size_t position = ot__fb_write_count(buf, count);

    for (size_t i = 0; i < count && !buf->failed; i++)
        append_uint(buf, 0, 4);
    return position;
}

size_t ot__fb_write_bytes(ot__buf *buf, const void *bytes, size_t n_bytes)
{
    size_t position;

    ot__fb_align(buf, 8, 4); // so that the elements are 8-aligned
    position = buf->length;
    append_uint(buf, n_bytes, 4);
    ot__buf_append(buf, bytes, n_bytes);
    return position;
}

size_t ot__fb_write_i64s(ot__buf *buf, const int64_t *values, int n)
{
    size_t position;

    ot__fb_align(buf, 8, 4);
    position = buf->length;
    append_uint(buf, (uint64_t)n, 4);
    for (int i = 0; i < n; i++)
        append_uint(buf, (uint64_t)values[i], 8);
    return position;
}

size_t ot__fb_write_count(ot__buf *buf, size_t count)
{
    size_t position;

    ot__fb_align(buf, 4, 0);
    position = buf->length;
    append_uint(buf, count, 4);
    return position;
}

void ot__fb_write_word(ot__buf *buf, uint32_t word)
{
    append_uint(buf, word, 4);
}
