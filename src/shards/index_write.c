// SPDX-License-Identifier: Apache-2.0
// The index of a directory: one JSON file, and further ones where there are many parts of tensors.
#include <string.h>

#include "shards/shards.h"

static void write_hex32(ot__buf *out, const char *name, uint32_t value)
{
    char text[9];

    snprintf(text, sizeof text, "%08" PRIx32, value);
    ot__json_string(out, name, text);
}

static void write_number_text(ot__buf *out, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    ot__json_string(out, name, text); // more than JavaScript's numbers hold
}

static void write_count(ot__buf *out, const char *name, uint64_t value)
{
    enum { NUMBER_BITS = 53 };

    if (value >> NUMBER_BITS == 0)
        ot__json_int(out, name, (int64_t)value);
    else
        write_number_text(out, name, value);
}

static void write_int64s(ot__buf *out, const char *name, const int64_t *values, int n)
{
    ot__json_open(out, name, '[');
    for (int i = 0; i < n; i++)
        ot__json_int(out, NULL, values[i]);
    ot__json_close(out, ']');
}

static void write_index_chunk(ot__buf *out, const ot__index_tensor *t, const ot__index_chunk *c)
{
    const int ndim = t->shape.ndim;

    ot__json_open(out, NULL, '{');
    ot__json_int(out, "f", c->file);
    write_int64s(out, "o", c->box, ndim);
    write_int64s(out, "s", c->box + ndim, ndim);
    write_count(out, "b", c->begin);
    write_count(out, "n", ot__index_chunk_bytes(t, c));
    write_hex32(out, "c", c->crc);
    ot__json_close(out, '}');
}

static void write_index_tensor(ot__buf *out, const ot__index_tensor *t)
{
    ot__json_open(out, t->key, '{');
    ot__json_string(out, "dtype", ot__safetensors_type(t->dtype));
    write_int64s(out, "shape", t->shape.dim, t->shape.ndim);
    ot__json_open(out, "chunks", '[');
    for (int i = 0; i < t->n_chunks; i++)
        write_index_chunk(out, t, &t->chunks[i]);
    ot__json_close(out, ']');
    ot__json_close(out, '}');
}

static void write_tensors(const ot__index *index, int first, int end, ot__buf *out)
{
    ot__json_open(out, "tensors", '{');
    for (int i = first; i < end; i++) {
        ot__buf_text(out, i > first ? ",\n" : "\n");
        write_index_tensor(out, &index->tensors[i]);
    }
    ot__buf_text(out, "\n}");
}

void ot__index_write_tensors(const ot__index *index, int *i_tensor, ot__buf *out)
{
    const int first = *i_tensor;
    int64_t n_chunks = 0;

    for (; *i_tensor < index->n_tensors; (*i_tensor)++) {
        const int n = index->tensors[*i_tensor].n_chunks;

        if (n_chunks > 0 && n_chunks + n > OT_INDEX_PART_CHUNKS)
            break;
        n_chunks += OT_MAX(n, 1); // a tensor without chunks takes room too
    }
    if (out != NULL) {
        ot__json_open(out, NULL, '{');
        write_tensors(index, first, *i_tensor, out);
        ot__buf_text(out, "}\n");
    }
}

static void write_index_files(const ot__index *index, ot__buf *out)
{
    ot__json_open(out, "files", '[');
    for (int i = 0; i < index->n_files; i++) {
        const ot__index_file *f = &index->files[i];

        ot__buf_text(out, i > 0 ? ",\n" : "\n");
        ot__json_open(out, NULL, '{');
        ot__json_string(out, "name", f->name);
        write_count(out, "size", f->size);
        write_count(out, "data_start", f->data_start);
        write_hex32(out, "crc32c", f->crc);
        ot__json_close(out, '}');
    }
    ot__json_close(out, ']');
}

static void write_index_parts(const ot__index *index, ot__buf *out)
{
    ot__json_open(out, "parts", '[');
    for (int i = 0; i < index->n_parts; i++) {
        ot__json_open(out, NULL, '{');
        ot__json_string(out, "name", index->parts[i].name);
        write_count(out, "size", index->parts[i].size);
        write_hex32(out, "crc32c", index->parts[i].crc);
        ot__json_close(out, '}');
    }
    ot__json_close(out, ']');
}

void ot__index_write(const ot__index *index, int n_tensors, ot__buf *out)
{
    ot__json_open(out, NULL, '{');
    ot__json_string(out, "format", OT_INDEX_FORMAT);
    write_int64s(out, "version", (const int64_t[]){OT_INDEX_VERSION, 0}, 2);
    ot__json_string(out, "save_id", index->save_id);
    write_number_text(out, "created_ns", index->unix_ns);
    ot__json_string(out, "writer", index->writer);
    write_count(out, "step", index->step);
    ot__json_int(out, "world_size", index->world_size);
    write_index_files(index, out);
    write_index_parts(index, out);
    ot__json_open(out, "items", '{');
    for (int i = 0; i < index->n_items; i++) {
        ot__buf_text(out, i > 0 ? ",\n" : "\n");
        ot__json_raw(out, index->items[i].name, index->items[i].json);
    }
    ot__buf_text(out, "\n}");
    write_tensors(index, 0, n_tensors, out);
    ot__buf_text(out, "}\n");
}
