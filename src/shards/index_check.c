// SPDX-License-Identifier: Apache-2.0
// What the files of an index say must fit together: names, boxes, places in files.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/sharding.h"
#include "shards/shards.h"

// ---- looking ----

static int compare_index_keys(const void *a, const void *b)
{
    const ot__index_tensor *x = a, *y = b;

    return strcmp(x->key, y->key);
}

const ot__index_tensor *ot__index_find(const ot__index *index, const char *key)
{
    const ot__index_tensor wanted = {.key = key};

    return index->n_tensors > 0 ? bsearch(&wanted, index->tensors, (size_t)index->n_tensors,
                                          sizeof *index->tensors, compare_index_keys)
                                : NULL;
}

ot_box ot__index_chunk_box(const ot__index_tensor *tensor, const ot__index_chunk *chunk)
{
    const int ndim = tensor->shape.ndim;
    ot_box box = {.ndim = ndim};

    memcpy(box.offset, chunk->box, (size_t)ndim * sizeof *chunk->box);
    memcpy(box.size, chunk->box + ndim, (size_t)ndim * sizeof *chunk->box);
    return box;
}

uint64_t ot__index_chunk_bytes(const ot__index_tensor *tensor, const ot__index_chunk *chunk)
{
    uint64_t count = 1;

    for (int k = 0; k < tensor->shape.ndim; k++)
        count *= (uint64_t)chunk->box[tensor->shape.ndim + k];
    return count * ot_dtype_size(tensor->dtype);
}

// ---- files ----

static bool is_shard_file_name(const char *name)
{
    static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(name);

    return n > 0 && n <= OT_INDEX_NAME_MAX && name[0] != '.' && strspn(name, taken) == n;
}

ot_status ot__index_check_name(const char *name)
{
    return is_shard_file_name(name)
               ? OT_OK
               : ot__error(OT_ERR_FORMAT, "'%s' is not the name of a file beside the index", name);
}

static ot_status check_index_name(ot__map *names, const char *name)
{
    OT_TRY(ot__index_check_name(name));
    if (ot__map_get(names, name) != NULL || strcmp(name, OT_INDEX_NAME) == 0)
        return ot__error(OT_ERR_FORMAT, "file '%s' is there twice", name);
    return ot__made(ot__map_put(names, name, names));
}

static ot_status check_index_files(const ot__index *index)
{
    ot__map names = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < index->n_parts && st == OT_OK; i++)
        st = check_index_name(&names, index->parts[i].name);
    for (int i = 0; i < index->n_files && st == OT_OK; i++) {
        const ot__index_file *f = &index->files[i];

        st = check_index_name(&names, f->name);
        if (st == OT_OK && f->data_start > f->size)
            st = ot__error(OT_ERR_FORMAT,
                           "file '%s': its data begin at %" PRIu64 " of %" PRIu64 " bytes", f->name,
                           f->data_start, f->size);
    }
    ot__map_deinit(&names);
    return st;
}

// ---- tensors ----

static ot_status check_chunk_place(const ot__index *index, const ot__index_tensor *t, int i)
{
    const int ndim = t->shape.ndim;
    const ot__index_chunk *c = &t->chunks[i];
    const uint64_t n_said = (uint64_t)c->box[2 * ndim], n_bytes = ot__index_chunk_bytes(t, c);
    const ot__index_file *f;

    if (c->file >= index->n_files)
        return ot__error(OT_ERR_FORMAT, "chunk %d: is in file %d of %d", i, c->file,
                         index->n_files);
    if (n_said != n_bytes)
        return ot__error(OT_ERR_FORMAT,
                         "chunk %d: has %" PRIu64 " bytes, its box and type %" PRIu64, i, n_said,
                         n_bytes);
    f = &index->files[c->file];
    if (c->begin > f->size - f->data_start || n_bytes > f->size - f->data_start - c->begin)
        return ot__error(OT_ERR_FORMAT,
                         "chunk %d: %" PRIu64 " bytes from %" PRIu64 " on, of %" PRIu64
                         " that file '%s' has",
                         i, n_bytes, c->begin, f->size - f->data_start, f->name);
    return OT_OK;
}

// Of a partition no chunk has more bytes than the whole, whose size does not overflow.
static ot_status check_chunk_boxes(const ot__index_tensor *t)
{
    ot_box *boxes = ot__alloc_zero((size_t)t->n_chunks, sizeof *boxes);
    ot_status st = ot__made(boxes != NULL);
    size_t n_bytes;

    if (st == OT_OK)
        st = ot__tensor_sizes(t->dtype, &t->shape, &n_bytes);
    for (int i = 0; i < t->n_chunks && st == OT_OK; i++)
        boxes[i] = ot__index_chunk_box(t, &t->chunks[i]);
    OT_THEN(st, ot_box_check_partition(&t->shape, boxes, t->n_chunks));
    ot__free(boxes);
    return st == OT_ERR_INVALID ? ot__error_prefix(OT_ERR_FORMAT, "chunks") : st;
}

static ot_status check_index_tensor(const ot__index *index, const ot__index_tensor *t,
                                    int *last_tensor_of_file, int i_tensor)
{
    OT_TRY(check_chunk_boxes(t));
    for (int i = 0; i < t->n_chunks; i++) {
        int *last;

        OT_TRY(check_chunk_place(index, t, i));
        last = &last_tensor_of_file[t->chunks[i].file];
        if (*last == i_tensor + 1)
            return ot__error(OT_ERR_FORMAT, "chunk %d: is the second one in file '%s'", i,
                             index->files[t->chunks[i].file].name);
        *last = i_tensor + 1;
    }
    return OT_OK;
}

static ot_status check_index_tensors(const ot__index *index)
{
    int *last_tensor_of_file =
        ot__alloc_zero((size_t)index->n_files + 1, sizeof *last_tensor_of_file);
    ot_status st = ot__made(last_tensor_of_file != NULL);

    for (int i = 0; i < index->n_tensors && st == OT_OK; i++) {
        const ot__index_tensor *t = &index->tensors[i];

        if (i > 0 && strcmp(index->tensors[i - 1].key, t->key) == 0)
            st = ot__error(OT_ERR_FORMAT, "is there twice");
        OT_THEN(st, check_index_tensor(index, t, last_tensor_of_file, i));
        if (st == OT_ERR_FORMAT)
            (void)ot__error_prefix(st, "tensor '%s'", t->key);
    }
    ot__free(last_tensor_of_file);
    return st;
}

ot_status ot__index_check(ot__index *index)
{
    OT_TRY(check_index_files(index));
    return ot__index_check_content(index);
}

ot_status ot__index_check_content(ot__index *index)
{
    if (index->n_tensors > 0)
        qsort(index->tensors, (size_t)index->n_tensors, sizeof *index->tensors, compare_index_keys);
    OT_TRY(check_index_tensors(index));
    return ot__values_check(index);
}

// ---- files as they are ----

static ot_status check_chunk_in_file(const ot__safetensors *found, const ot__index_tensor *t,
                                     const char *name, int i)
{
    const ot__index_chunk *c = &t->chunks[i];
    const ot__safetensor *part = ot__safetensors_find(found, name);

    if (part == NULL)
        return ot__error(OT_ERR_FORMAT, "has no tensor '%s'", name);
    if (part->dtype != t->dtype || part->ndim != t->shape.ndim ||
        memcmp(part->dims, c->box + part->ndim, (size_t)part->ndim * sizeof *part->dims) != 0 ||
        part->begin != c->begin || part->end != c->begin + ot__index_chunk_bytes(t, c))
        return ot__error(OT_ERR_FORMAT,
                         "tensor '%s': differs in type, shape or place from chunk %d of the index",
                         t->key, i);
    return OT_OK;
}

static ot_status check_file(const ot__index *index, int i_file, const uint8_t *bytes,
                            size_t n_bytes)
{
    const ot__index_file *f = &index->files[i_file];
    ot__safetensors found;
    int n_found = 0;
    ot_status st;

    if (n_bytes != f->size)
        return ot__error(OT_ERR_FORMAT, "has %zu bytes, expected %" PRIu64, n_bytes, f->size);
    if (!index->is_foreign && ot__crc32c(0, bytes, (size_t)f->data_start) != f->crc)
        return ot__error(OT_ERR_FORMAT, "its header has another checksum than the index says");
    OT_TRY(ot__safetensors_read(bytes, n_bytes, &found));
    st = found.data_start == f->data_start
             ? OT_OK
             : ot__error(OT_ERR_FORMAT, "its data begin at byte %" PRIu64 ", expected %" PRIu64,
                         found.data_start, f->data_start);
    for (int i = 0; i < index->n_tensors && st == OT_OK; i++) {
        const ot__index_tensor *t = &index->tensors[i];

        for (int k = 0; k < t->n_chunks && st == OT_OK; k++) {
            const ot__index_chunk *c = &t->chunks[k];

            if (c->file != i_file)
                continue;
            st = check_chunk_in_file(&found, t, t->key + index->n_prefix, k);
            n_found++;
            if (st == OT_OK && !index->is_foreign &&
                ot__crc32c(0, bytes + f->data_start + c->begin,
                           (size_t)ot__index_chunk_bytes(t, c)) != c->crc)
                st = ot__error(OT_ERR_FORMAT, "tensor '%s': chunk %d has another checksum", t->key,
                               k);
        }
    }
    if (st == OT_OK && !index->is_foreign && n_found != found.n_tensors)
        st = ot__error(OT_ERR_FORMAT, "has %d tensors, and the index %d", found.n_tensors, n_found);
    ot__safetensors_deinit(&found);
    return st;
}

ot_status ot__index_check_file(const ot__index *index, int i_file, const void *bytes,
                               size_t n_bytes)
{
    const ot_status st = check_file(index, i_file, bytes, n_bytes);

    return st == OT_ERR_FORMAT ? ot__error_prefix(st, "file '%s'", index->files[i_file].name) : st;
}
