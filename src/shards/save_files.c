// SPDX-License-Identifier: Apache-2.0
// The files of one rank: safetensors files that any reader of the format takes, with what PyTorch's
// reader of parts wants to know of them.
#include <string.h>

#include "shards/safetensors.h"

enum {
    FILE_ALIGNMENT = 4096,
    FILE_HEADER_MAX = 90000000,   // of what is estimated; below OT_SAFETENSORS_HEADER_MAX
    TENSOR_HEADER_BYTES = 1024,   // of one tensor in all of a header, besides its key
    SMALL_BYTES = 64 * 1024,      // chunks below it are written together,
    TOGETHER_BYTES = 1024 * 1024, // so many at once
};

void ot__save_file_name(int rank, int file, char name[64])
{
    snprintf(name, 64, "data-%05d-%05d.safetensors", rank, file);
}

static uint64_t bytes_of_chunk(const ot__save_chunk *c)
{
    return (uint64_t)ot__box_count(&c->leaf->boxes[c->part]) * ot_dtype_size(c->leaf->dtype);
}

// ---- which chunk goes into which file ----

// Every chunk gets its file; *n_files: how many there are. A file has one chunk of a key at most:
// the n-th ones of all keys come after those before them.
static void assign_files(ot__save_files *f, int *n_files)
{
    int last_round = 0, file = -1;

    for (int round = 0; round <= last_round; round++) {
        uint64_t bytes = 0, header = 0;
        bool is_first = true;

        for (int i = 0, own = 0; i < f->n_chunks; i++) {
            const uint64_t n = bytes_of_chunk(&f->chunks[i]);
            const uint64_t n_header = TENSOR_HEADER_BYTES + 4 * strlen(f->chunks[i].leaf->key);

            own = i > 0 && f->chunks[i - 1].leaf == f->chunks[i].leaf ? own + 1 : 0;
            last_round = OT_MAX(last_round, own);
            if (own != round)
                continue;
            if (is_first || (int64_t)(bytes + n) > f->file_bytes_max ||
                header + n_header > FILE_HEADER_MAX) {
                file++;
                bytes = header = 0;
                is_first = false;
            }
            f->chunks[i].file = file;
            bytes += n;
            header += n_header;
        }
    }
    *n_files = file + 1;
}

// ---- one file ----

typedef struct file_out {
    ot__save_files *files;
    int number;
    ot__save_chunk **chunks; // of this file
    ot__safetensor *tensors;
    int n;
    ot__map by_key;
    ot__buf places, shapes, header;
    char rank[16];
    ot__file_writer *writer;
    ot__buf together;
} file_out;

static void write_dims(ot__buf *out, const char *name, const int64_t *values, int n)
{
    ot__json_open(out, name, '[');
    for (int i = 0; i < n; i++)
        ot__json_int(out, NULL, values[i]);
    ot__json_close(out, ']');
}

// JSON within JSON: where each tensor is in its whole, and what the whole is.
static ot_status describe_parts(file_out *o)
{
    ot__json_open(&o->places, NULL, '{');
    ot__json_open(&o->shapes, NULL, '{');
    for (int i = 0; i < o->n; i++) {
        const ot__leaf *leaf = o->chunks[i]->leaf;

        ot__json_open(&o->places, leaf->key, '{');
        write_dims(&o->places, "saved_offsets", leaf->boxes[o->chunks[i]->part].offset,
                   leaf->shape.ndim);
        ot__json_close(&o->places, '}');
        write_dims(&o->shapes, leaf->key, leaf->shape.dim, leaf->shape.ndim);
    }
    ot__json_close(&o->places, '}');
    ot__json_close(&o->shapes, '}');
    OT_TRY(ot__buf_status(&o->places));
    return ot__buf_status(&o->shapes);
}

static ot_status make_file_header(file_out *o)
{
    ot__save_file *file = &o->files->files[o->number];
    const ot__safetensors_text texts[] = {
        {"format", "pt"},
        {"DCP_VERSION", "1.0"},
        {"DCP_SHARDING_INFO", o->places.data},
        {"onnxtrain.save_id", o->files->save_id},
        {"onnxtrain.rank", o->rank},
        {"onnxtrain.global_shapes", o->shapes.data},
    };

    OT_TRY(ot__safetensors_header(o->tensors, o->n, texts, (int)OT_COUNT(texts), FILE_ALIGNMENT,
                                  &o->header));
    file->data_start = o->header.length;
    file->size = o->header.length + (o->n > 0 ? o->tensors[o->n - 1].end : 0);
    file->crc = ot__crc32c(0, o->header.data, o->header.length);
    return OT_OK;
}

static ot_status collect_chunks(file_out *o)
{
    ot__save_files *f = o->files;

    for (int i = 0; i < f->n_chunks; i++)
        o->n += f->chunks[i].file == o->number;
    o->chunks = ot__alloc_zero((size_t)o->n, sizeof(ot__save_chunk *));
    o->tensors = ot__alloc_zero((size_t)o->n, sizeof *o->tensors);
    OT_TRY(ot__made(o->chunks != NULL && o->tensors != NULL));
    for (int i = 0, n = 0; i < f->n_chunks; i++) {
        ot__save_chunk *c = &f->chunks[i];

        if (c->file != o->number)
            continue;
        o->chunks[n] = c;
        o->tensors[n++] = (ot__safetensor){.name = c->leaf->key,
                                           .dtype = c->leaf->dtype,
                                           .ndim = c->leaf->shape.ndim,
                                           .dims = c->leaf->boxes[c->part].size};
        OT_TRY(ot__made(ot__map_put(&o->by_key, c->leaf->key, c)));
    }
    return OT_OK;
}

static ot_status flush_together(file_out *o)
{
    OT_TRY(ot__buf_status(&o->together));
    OT_TRY(ot__file_writer_write(o->writer, o->together.data, o->together.length));
    o->together.length = 0;
    return OT_OK;
}

// Piece by piece, so that what is written is near when its checksum is made.
static ot_status write_checked(file_out *o, const char *data, size_t n_bytes, uint32_t *crc)
{
    enum { PIECE = 512 << 10 };

    *crc = 0;
    for (size_t at = 0; at < n_bytes; at += PIECE) {
        const size_t n = OT_MIN(n_bytes - at, (size_t)PIECE);

        *crc = ot__crc32c(*crc, data + at, n);
        OT_TRY(ot__file_writer_write(o->writer, data + at, n));
    }
    return OT_OK;
}

static ot_status write_chunk(file_out *o, const ot__safetensor *tensor)
{
    ot__save_chunk *c = ot__map_get(&o->by_key, tensor->name);
    const size_t n = (size_t)(tensor->end - tensor->begin);
    const void *data = c->data;

    if (o->files->fetch != NULL)
        OT_TRY(o->files->fetch(o->files->context, c, &data));
    c->begin = tensor->begin;
    if (n < SMALL_BYTES) {
        c->crc = ot__crc32c(0, data, n);
        ot__buf_append(&o->together, data, n);
        return o->together.length < TOGETHER_BYTES ? OT_OK : flush_together(o);
    }
    OT_TRY(flush_together(o));
    return write_checked(o, data, n, &c->crc);
}

static ot_status write_file(file_out *o, const char *folder)
{
    char name[64];
    char *path;
    ot_status st;

    ot__save_file_name(o->files->rank, o->number, name);
    path = ot__path_join(folder, name);
    st = ot__made(path != NULL);
    OT_THEN(st, ot__file_writer_open_within(&o->writer, path));
    OT_THEN(st, ot__file_writer_write(o->writer, o->header.data, o->header.length));
    for (int i = 0; i < o->n && st == OT_OK; i++)
        st = write_chunk(o, &o->tensors[i]);
    OT_THEN(st, flush_together(o));
    if (st == OT_OK)
        st = ot__file_writer_commit(o->writer);
    else
        ot__file_writer_abort(o->writer);
    ot__free(path);
    return st;
}

static ot_status make_file(ot__save_files *files, int number, const char *folder)
{
    file_out o = {.files = files, .number = number};
    ot_status st = collect_chunks(&o);

    snprintf(o.rank, sizeof o.rank, "%d", files->rank);
    OT_THEN(st, describe_parts(&o));
    OT_THEN(st, ot__safetensors_place(o.tensors, o.n));
    OT_THEN(st, make_file_header(&o));
    OT_THEN(st, write_file(&o, folder));
    ot__map_deinit(&o.by_key);
    ot__buf_deinit(&o.places);
    ot__buf_deinit(&o.shapes);
    ot__buf_deinit(&o.header);
    ot__buf_deinit(&o.together);
    ot__free(o.chunks);
    ot__free(o.tensors);
    return st;
}

ot_status ot__save_files_write(ot__save_files *files, const char *folder)
{
    assign_files(files, &files->n_files);
    files->files = ot__alloc_zero((size_t)files->n_files, sizeof *files->files);
    OT_TRY(ot__made(files->files != NULL));
    for (int i = 0; i < files->n_files; i++)
        OT_TRY(make_file(files, i, folder));
    return OT_OK;
}

void ot__save_files_deinit(ot__save_files *files)
{
    ot__free(files->chunks);
    ot__free(files->files);
    *files = (ot__save_files){0};
}
