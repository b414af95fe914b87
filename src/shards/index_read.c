// SPDX-License-Identifier: Apache-2.0
// Reads the files of an index, one value after the other.
#include <stdlib.h>
#include <string.h>

#include "shards/safetensors.h"

#define INDEX_NUMBER_MAX (((uint64_t)1 << 53) - 1)
#define INDEX_DIM_MAX ((uint64_t)1 << 48)

typedef struct index_in {
    ot__json_scan scan;
    ot__index *index;
    ot__index_chunk *chunks; // of the tensor at hand; kept from one to the next
    int chunks_capacity;
    int chunk_ndim; // of its chunks; -1: none has been read
} index_in;

// ---- objects with known members ----

typedef struct member {
    const char *name;
    ot_status (*read)(index_in *in, void *to);
    size_t offset; // of what it is read into
} member;

// Members in any order, each once. Others may add some that begin with "x-", and later minor
// versions any behind the version.
static ot_status read_object(index_in *in, const member *members, void *to)
{
    unsigned seen = 0;
    const char *name;
    bool has_more;
    int i;

    OT_TRY(ot__json_scan_open(&in->scan, '{'));
    for (;;) {
        OT_TRY(ot__json_scan_next(&in->scan, &name, &has_more));
        if (!has_more)
            break;
        for (i = 0; members[i].name != NULL && strcmp(members[i].name, name) != 0; i++)
            continue;
        if (members[i].name == NULL && (in->index->is_later || ot__starts_with(name, "x-"))) {
            OT_TRY(ot__json_scan_skip(&in->scan));
            continue;
        }
        if (members[i].name == NULL)
            return ot__json_scan_error(&in->scan, "unknown member '%s'", name);
        if ((seen >> i & 1) != 0)
            return ot__json_scan_error(&in->scan, "'%s' is there twice", name);
        seen |= 1U << i;
        OT_TRY(members[i].read(in, (char *)to + members[i].offset));
    }
    for (i = 0; members[i].name != NULL; i++)
        if ((seen >> i & 1) == 0)
            return ot__json_scan_error(&in->scan, "no '%s'", members[i].name);
    return OT_OK;
}

// ---- values ----

static ot_status keep_string(index_in *in, void *to)
{
    const char **out = to, *text;

    OT_TRY(ot__json_scan_string(&in->scan, &text));
    *out = ot__arena_strdup(in->index->arena, text);
    return ot__made(*out != NULL);
}

// A number, or its digits as text, which hold more than numbers of JavaScript.
static ot_status read_index_count(index_in *in, uint64_t number_max, uint64_t text_max,
                                  uint64_t *out)
{
    const char *text;
    int64_t value;

    if (ot__json_scan_kind(&in->scan) != '"')
        return ot__json_scan_count(&in->scan, number_max, out);
    OT_TRY(ot__json_scan_string(&in->scan, &text));
    if (strspn(text, "0123456789") != strlen(text) || (text[0] == '0' && text[1] != '\0') ||
        !ot__parse_int(text, &value) || (uint64_t)value > text_max)
        return ot__json_scan_error(&in->scan, "'%s', expected a whole number from 0 to %" PRIu64,
                                   text, text_max);
    *out = (uint64_t)value;
    return OT_OK;
}

static ot_status read_large_count(index_in *in, void *to)
{
    return read_index_count(in, INDEX_NUMBER_MAX, INT64_MAX, to);
}

static ot_status read_hex32(index_in *in, void *to)
{
    enum { DIGITS = 8 };
    uint32_t *out = to;
    const char *text;

    OT_TRY(ot__json_scan_string(&in->scan, &text));
    if (strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS)
        return ot__json_scan_error(&in->scan, "'%s', expected %d hexadecimal digits", text, DIGITS);
    *out = (uint32_t)strtoul(text, NULL, 16);
    return OT_OK;
}

// Numbers into `out`; *n: how many, at most `max`.
static ot_status read_dims(index_in *in, int64_t *out, int max, int *n)
{
    const char *none;
    bool has_more;

    *n = 0;
    OT_TRY(ot__json_scan_open(&in->scan, '['));
    for (;;) {
        uint64_t size;

        OT_TRY(ot__json_scan_next(&in->scan, &none, &has_more));
        if (!has_more)
            return OT_OK;
        if (*n == max)
            return ot__json_scan_error(&in->scan, "more than %d axes", max);
        OT_TRY(read_index_count(in, INDEX_DIM_MAX, INDEX_DIM_MAX, &size));
        out[(*n)++] = (int64_t)size;
    }
}

// ---- files ----

static const member file_members[] = {
    {"name", keep_string, offsetof(ot__index_file, name)},
    {"size", read_large_count, offsetof(ot__index_file, size)},
    {"data_start", read_large_count, offsetof(ot__index_file, data_start)},
    {"crc32c", read_hex32, offsetof(ot__index_file, crc)},
    {0}};
static const member part_members[] = {{"name", keep_string, offsetof(ot__index_part, name)},
                                      {"size", read_large_count, offsetof(ot__index_part, size)},
                                      {"crc32c", read_hex32, offsetof(ot__index_part, crc)},
                                      {0}};

// Each element of an array in its turn.
static ot_status read_list(index_in *in, void *to, ot_status (*read)(index_in *in, void *to))
{
    const char *none;
    bool has_more = true;

    OT_TRY(ot__json_scan_open(&in->scan, '['));
    for (;;) {
        OT_TRY(ot__json_scan_next(&in->scan, &none, &has_more));
        if (!has_more)
            return OT_OK;
        OT_TRY(read(in, to));
    }
}

static ot_status read_listed_file(index_in *in, void *to)
{
    ot__index *index = in->index;
    ot__index_file file = {0};

    (void)to;
    if (index->n_files == OT_INDEX_FILES_MAX)
        return ot__json_scan_error(&in->scan, "more than %d files", OT_INDEX_FILES_MAX);
    OT_TRY(read_object(in, file_members, &file));
    return ot__made(ot__arena_push(index->arena, &index->files, &index->files_capacity,
                                   &index->n_files, &file, sizeof file));
}

static ot_status read_index_files(index_in *in, void *to)
{
    return read_list(in, to, read_listed_file);
}

static ot_status read_listed_part(index_in *in, void *to)
{
    enum { PARTS_MAX = 1000 };
    ot__index *index = in->index;
    ot__index_part part = {0};

    (void)to;
    if (index->n_parts == PARTS_MAX)
        return ot__json_scan_error(&in->scan, "more than %d parts", PARTS_MAX);
    OT_TRY(read_object(in, part_members, &part));
    return ot__made(ot__arena_push(index->arena, &index->parts, &index->parts_capacity,
                                   &index->n_parts, &part, sizeof part));
}

static ot_status read_index_parts(index_in *in, void *to)
{
    return read_list(in, to, read_listed_part);
}

// ---- items: kept as they stand there ----

static ot_status read_index_items(index_in *in, void *to)
{
    ot__index *index = in->index;
    const char *name;
    bool has_more;

    (void)to;
    OT_TRY(ot__json_scan_open(&in->scan, '{'));
    for (;;) {
        ot__index_item item = {0};
        size_t begin;

        OT_TRY(ot__json_scan_next(&in->scan, &name, &has_more));
        if (!has_more)
            return OT_OK;
        for (int i = 0; i < index->n_items; i++)
            if (strcmp(index->items[i].name, name) == 0)
                return ot__json_scan_error(&in->scan, "item '%s' is there twice", name);
        item.name = ot__arena_strdup(index->arena, name);
        OT_TRY(ot__made(item.name != NULL));
        if (ot__json_scan_kind(&in->scan) != '{')
            return ot__json_scan_error(&in->scan, "item '%s' is no object", item.name);
        begin = in->scan.at;
        OT_TRY(ot__json_scan_skip(&in->scan));
        item.json = ot__arena_strndup(index->arena, in->scan.text + begin, in->scan.at - begin);
        OT_TRY(ot__made(item.json != NULL &&
                        ot__arena_push(index->arena, &index->items, &index->items_capacity,
                                       &index->n_items, &item, sizeof item)));
    }
}

// ---- tensors ----

typedef struct chunk_in {
    ot__index_chunk chunk;
    int n_offsets, n_sizes;
    uint64_t n_bytes, file;
    int64_t box[2 * OT_MAX_NDIM];
} chunk_in;

static ot_status read_chunk_file(index_in *in, void *to)
{
    return read_index_count(in, OT_INDEX_FILES_MAX, OT_INDEX_FILES_MAX, &((chunk_in *)to)->file);
}

static ot_status read_chunk_offsets(index_in *in, void *to)
{
    return read_dims(in, ((chunk_in *)to)->box, OT_MAX_NDIM, &((chunk_in *)to)->n_offsets);
}

static ot_status read_chunk_sizes(index_in *in, void *to)
{
    return read_dims(in, ((chunk_in *)to)->box + OT_MAX_NDIM, OT_MAX_NDIM,
                     &((chunk_in *)to)->n_sizes);
}

static const member chunk_members[] = {{"f", read_chunk_file, 0},
                                       {"o", read_chunk_offsets, 0},
                                       {"s", read_chunk_sizes, 0},
                                       {"b", read_large_count, offsetof(chunk_in, chunk.begin)},
                                       {"n", read_large_count, offsetof(chunk_in, n_bytes)},
                                       {"c", read_hex32, offsetof(chunk_in, chunk.crc)},
                                       {0}};

// Whether `n` fits box and type is checked once these are known; it stands behind the box.
static ot_status keep_chunk(index_in *in, ot__index_tensor *t, const chunk_in *c)
{
    const size_t n = (size_t)c->n_offsets;
    int64_t *box = ot__arena_alloc(in->index->arena, (2 * n + 1) * sizeof *box);
    ot__index_chunk chunk = c->chunk;

    OT_TRY(ot__made(box != NULL));
    memcpy(box, c->box, n * sizeof *box);
    memcpy(box + n, c->box + OT_MAX_NDIM, n * sizeof *box);
    box[2 * n] = (int64_t)c->n_bytes;
    chunk.file = (int)c->file;
    chunk.box = box;
    OT_TRY(ot__made(ot__grow(&in->chunks, &in->chunks_capacity, t->n_chunks, sizeof chunk)));
    in->chunks[t->n_chunks++] = chunk;
    return OT_OK;
}

static ot_status read_listed_chunk(index_in *in, void *to)
{
    chunk_in c = {0};

    if (in->index->n_chunks == OT_INDEX_CHUNKS_MAX)
        return ot__json_scan_error(&in->scan, "more than %d chunks", OT_INDEX_CHUNKS_MAX);
    OT_TRY(read_object(in, chunk_members, &c));
    if (c.n_offsets != c.n_sizes || (in->chunk_ndim >= 0 && c.n_offsets != in->chunk_ndim))
        return ot__json_scan_error(&in->scan, "a chunk with %d offsets and %d sizes", c.n_offsets,
                                   c.n_sizes);
    in->chunk_ndim = c.n_offsets;
    OT_TRY(keep_chunk(in, to, &c));
    in->index->n_chunks++;
    return OT_OK;
}

static ot_status read_index_chunks(index_in *in, void *to)
{
    return read_list(in, to, read_listed_chunk);
}

static ot_status read_tensor_dtype(index_in *in, void *to)
{
    const char *name;

    OT_TRY(ot__json_scan_string(&in->scan, &name));
    ((ot__index_tensor *)to)->dtype = ot__safetensors_dtype(name);
    return ot_dtype_size(((ot__index_tensor *)to)->dtype) > 0
               ? OT_OK
               : ot__json_scan_error(&in->scan, "unknown dtype '%s'", name);
}

static ot_status read_tensor_shape(index_in *in, void *to)
{
    ot_shape *shape = &((ot__index_tensor *)to)->shape;

    return read_dims(in, shape->dim, OT_MAX_NDIM, &shape->ndim);
}

static const member tensor_members[] = {{"dtype", read_tensor_dtype, 0},
                                        {"shape", read_tensor_shape, 0},
                                        {"chunks", read_index_chunks, 0},
                                        {0}};

static ot_status read_index_tensor(index_in *in, const char *name)
{
    ot__index *index = in->index;
    ot__index_tensor tensor = {0};

    if (strlen(name) > OT_INDEX_KEY_MAX)
        return ot__json_scan_error(&in->scan, "a key of %zu bytes, expected at most %d",
                                   strlen(name), OT_INDEX_KEY_MAX);
    tensor.key = ot__arena_strdup(index->arena, name);
    OT_TRY(ot__made(tensor.key != NULL));
    in->chunk_ndim = -1;
    OT_TRY(read_object(in, tensor_members, &tensor));
    if (tensor.n_chunks > 0 && in->chunk_ndim != tensor.shape.ndim)
        return ot__json_scan_error(&in->scan, "tensor '%s' has %d axes, its chunks %d", tensor.key,
                                   tensor.shape.ndim, in->chunk_ndim);
    tensor.chunks =
        ot__arena_memdup(index->arena, in->chunks, (size_t)tensor.n_chunks * sizeof *tensor.chunks);
    OT_TRY(ot__made(tensor.chunks != NULL &&
                    ot__arena_push(index->arena, &index->tensors, &index->tensors_capacity,
                                   &index->n_tensors, &tensor, sizeof tensor)));
    return OT_OK;
}

static ot_status read_index_tensors(index_in *in, void *to)
{
    const char *name;
    bool has_more;

    (void)to;
    OT_TRY(ot__json_scan_open(&in->scan, '{'));
    for (;;) {
        OT_TRY(ot__json_scan_next(&in->scan, &name, &has_more));
        if (!has_more)
            return OT_OK;
        OT_TRY(read_index_tensor(in, name));
    }
}

// ---- the file ----

static ot_status read_format(index_in *in, void *to)
{
    const char *text;

    (void)to;
    OT_TRY(ot__json_scan_string(&in->scan, &text));
    return strcmp(text, OT_INDEX_FORMAT) == 0
               ? OT_OK
               : ot__json_scan_error(&in->scan, "format '%s', expected '%s'", text,
                                     OT_INDEX_FORMAT);
}

static ot_status read_version(index_in *in, void *to)
{
    int64_t version[2];
    int n;

    (void)to;
    OT_TRY(read_dims(in, version, 2, &n));
    if (n != 2 || version[0] != OT_INDEX_VERSION)
        return ot__json_scan_error(
            &in->scan,
            "version %" PRId64 ".%" PRId64 ", expected %d.x: another onnxtrain has written it",
            n > 0 ? version[0] : 0, n > 1 ? version[1] : 0, OT_INDEX_VERSION);
    in->index->is_later = version[1] > 0;
    return OT_OK;
}

static ot_status read_save_id(index_in *in, void *to)
{
    const char **id = to;

    OT_TRY(keep_string(in, to));
    return strlen(*id) == OT_HEX_ID_LENGTH && ot__is_hex_id(*id)
               ? OT_OK
               : ot__json_scan_error(&in->scan, "save_id is not %d hexadecimal digits",
                                     OT_HEX_ID_LENGTH);
}

static ot_status read_created(index_in *in, void *to)
{
    const char *text;
    int64_t value;

    OT_TRY(ot__json_scan_string(&in->scan, &text));
    if (!ot__parse_int(text, &value) || value < 0)
        return ot__json_scan_error(&in->scan, "created_ns '%s' is no time", text);
    *(uint64_t *)to = (uint64_t)value;
    return OT_OK;
}

static ot_status read_world_size(index_in *in, void *to)
{
    uint64_t size;

    OT_TRY(read_index_count(in, INT32_MAX, INT32_MAX, &size));
    *(int *)to = (int)size;
    return OT_OK;
}

static const member index_members[] = {
    {"format", read_format, 0},
    {"version", read_version, 0},
    {"save_id", read_save_id, offsetof(ot__index, save_id)},
    {"created_ns", read_created, offsetof(ot__index, unix_ns)},
    {"writer", keep_string, offsetof(ot__index, writer)},
    {"step", read_large_count, offsetof(ot__index, step)},
    {"world_size", read_world_size, offsetof(ot__index, world_size)},
    {"files", read_index_files, 0},
    {"parts", read_index_parts, 0},
    {"items", read_index_items, 0},
    {"tensors", read_index_tensors, 0},
    {0}};
static const member further_members[] = {{"tensors", read_index_tensors, 0}, {0}};

static ot_status read_index_file(ot__index *index, const char *text, size_t n_bytes,
                                 const member *members)
{
    index_in in = {.index = index};
    ot_status st;

    if (n_bytes > OT_INDEX_BYTES_MAX)
        return ot__error(OT_ERR_FORMAT, "has %zu bytes, expected at most %d", n_bytes,
                         OT_INDEX_BYTES_MAX);
    st = ot__json_scan_init(&in.scan, text, n_bytes);
    OT_THEN(st, read_object(&in, members, index));
    OT_THEN(st, ot__json_scan_end(&in.scan));
    ot__json_scan_deinit(&in.scan);
    ot__free(in.chunks);
    return st;
}

ot_status ot__index_read(const char *text, size_t n_bytes, ot__index *out)
{
    ot_status st;

    *out = (ot__index){.arena = ot__arena_create()};
    OT_TRY(ot__made(out->arena != NULL));
    st = read_index_file(out, text, n_bytes, index_members);
    if (st != OT_OK)
        ot__index_deinit(out);
    return st;
}

ot_status ot__index_read_part(ot__index *index, const char *text, size_t n_bytes)
{
    return read_index_file(index, text, n_bytes, further_members);
}

ot_status ot__index_read_head(const char *text, size_t n_bytes, uint64_t *step, uint64_t *unix_ns)
{
    enum { HEAD = 7 }; // members before the files
    ot__index head = {.arena = ot__arena_create()};
    index_in in = {.index = &head};
    bool has_more = true;
    ot_status st = ot__made(head.arena != NULL);

    OT_THEN(st, ot__json_scan_init(&in.scan, text, n_bytes));
    OT_THEN(st, ot__json_scan_open(&in.scan, '{'));
    for (int i = 0; i < HEAD && st == OT_OK; i++) {
        const char *name = "";

        st = ot__json_scan_next(&in.scan, &name, &has_more);
        if (st == OT_OK && (!has_more || strcmp(name, index_members[i].name) != 0))
            st = ot__json_scan_error(&in.scan, "'%s', expected '%s'", name, index_members[i].name);
        OT_THEN(st, index_members[i].read(&in, (char *)&head + index_members[i].offset));
    }
    *step = head.step;
    *unix_ns = head.unix_ns;
    ot__json_scan_deinit(&in.scan);
    ot__arena_destroy(head.arena);
    return st;
}

void ot__index_deinit(ot__index *index)
{
    ot__arena_destroy(index->arena);
    *index = (ot__index){0};
}
