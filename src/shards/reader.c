// SPDX-License-Identifier: Apache-2.0
// One process looks at a checkpoint.
#include <stdlib.h>
#include <string.h>

#include "shards/shards.h"

struct ot_shards_reader {
    ot__located at; // the path is told to callers
    ot__index index;
};

static ot_status open_any(ot_shards_reader *reader, const char *path)
{
    const ot__team alone = {.n = 1};

    OT_TRY(ot__shards_locate(path, &reader->at));
    return ot__index_load(&alone, &reader->at, &reader->index);
}

ot_status ot_shards_open(const char *path, ot_shards_reader **out)
{
    ot_shards_reader *reader;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(path));
    reader = ot__alloc_zero(1, sizeof *reader);
    OT_TRY(ot__made(reader != NULL));
    OT_ENTER(reader);
    st = open_any(reader, path);
    return OT_HAND_OUT(st, out, reader, ot_shards_reader_destroy);
}

void ot_shards_reader_destroy(ot_shards_reader *reader)
{
    if (!OT_ENDS(reader))
        return;
    ot__index_deinit(&reader->index);
    ot__located_deinit(&reader->at);
    ot__handle_leave(reader);
    ot__free(reader);
}

// ---- what there is ----

const char *ot_shards_reader_path(const ot_shards_reader *reader)
{
    return OT_IS_LIVE(reader) ? reader->at.path : NULL;
}

ot_status ot_shards_reader_info(const ot_shards_reader *reader, ot_shards_info *info)
{
    const ot__index *index;
    ot_shards_info own;

    OT_TRY(OT_GIVEN(reader));
    OT_TRY(OT_GIVEN(info));
    OT_TRY(OT_OPTIONS_READ(ot_shards_info, OT_SHARDS_INFO_INIT, info, &own));
    index = &reader->index;
    own.step = (int64_t)index->step;
    own.unix_ns = (int64_t)index->unix_ns;
    own.n_bytes = 0;
    for (int i = 0; i < index->n_tensors; i++)
        for (int k = 0; k < index->tensors[i].n_chunks; k++)
            own.n_bytes +=
                (int64_t)ot__index_chunk_bytes(&index->tensors[i], &index->tensors[i].chunks[k]);
    own.world_size = index->world_size;
    own.n_files = index->n_files;
    own.n_tensors = index->n_tensors;
    own.n_chunks = index->n_chunks;
    own.n_items = index->n_items;
    own.is_foreign = index->is_foreign;
    ot__options_write(info, &own, sizeof own);
    return OT_OK;
}

const char *ot_shards_reader_item(const ot_shards_reader *reader, int i)
{
    return OT_IS_LIVE(reader) && i >= 0 && i < reader->index.n_items ? reader->index.items[i].name
                                                                     : NULL;
}

ot_status ot_shards_reader_tensor(const ot_shards_reader *reader, int index,
                                  ot_shards_tensor *tensor)
{
    ot_shards_tensor own;
    const ot__index_tensor *t;

    OT_TRY(OT_GIVEN(reader));
    OT_TRY(OT_GIVEN(tensor));
    OT_TRY(OT_OPTIONS_READ(ot_shards_tensor, OT_SHARDS_TENSOR_INIT, tensor, &own));
    if (index < 0 || index >= reader->index.n_tensors)
        return ot__error(OT_ERR_NOT_FOUND, "there is no tensor %d, the checkpoint has %d", index,
                         reader->index.n_tensors);
    t = &reader->index.tensors[index];
    own.key = t->key;
    own.dtype = t->dtype;
    own.shape = &t->shape;
    own.n_chunks = t->n_chunks;
    ot__options_write(tensor, &own, sizeof own);
    return OT_OK;
}

// ---- trees ----

static ot_status read_tree(const ot_shards_reader *reader, const char *name, bool whole,
                           ot_dict *dict)
{
    ot__names names = {.wanted = name};

    for (int i = 0; i < reader->index.n_items; i++) {
        if (strcmp(reader->index.items[i].name, name) == 0)
            return ot__values_read(&reader->index, &reader->index.items[i], whole, dict);
        ot__names_add(&names, reader->index.items[i].name);
    }
    return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no item '%s', it has: %s%s", name,
                     ot__names_list(&names, "items"), ot__names_hint(&names));
}

ot_status ot_shards_reader_describe(const ot_shards_reader *reader, const char *item, ot_dict **out)
{
    ot_dict *dict = NULL;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(reader));
    OT_TRY(OT_GIVEN(item));
    st = ot_dict_create(&dict);
    OT_THEN(st, read_tree(reader, item, false, dict));
    return OT_HAND_OUT(st, out, dict, ot_dict_destroy);
}

static ot_status read_leaves(const ot_shards_reader *reader, const ot__leaf *leaves, int n)
{
    ot__read_counts counts = {0};
    ot__portions pieces = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < n && st == OT_OK; i++) {
        const ot__index_tensor *t = ot__index_find(&reader->index, leaves[i].key);

        st = t != NULL
                 ? ot__plan_load(t, &leaves[i], false, &pieces)
                 : ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no tensor '%s'", leaves[i].key);
    }
    ot__portions_sort(&pieces);
    OT_THEN(st, ot__portions_read(&reader->index, reader->at.folder, &pieces, OT_SHARDS_VERIFY_READ,
                                  &counts));
    ot__free(pieces.items);
    return st;
}

ot_status ot_shards_reader_read(const ot_shards_reader *reader, const char *item, ot_dict **out)
{
    ot_shards_item own = OT_SHARDS_ITEM_INIT;
    ot__leaves leaves = {0};
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(reader));
    OT_TRY(OT_GIVEN(item));
    own.name = item;
    st = ot_dict_create(&own.dict);
    OT_THEN(st, read_tree(reader, item, true, own.dict));
    OT_THEN(st, ot__leaves_of(&own, 1, &leaves));
    OT_THEN(st, read_leaves(reader, leaves.items, leaves.n));
    ot__leaves_deinit(&leaves);
    return OT_HAND_OUT(st, out, own.dict, ot_dict_destroy);
}

ot_status ot_shards_reader_read_box(const ot_shards_reader *reader, const char *key,
                                    const ot_box *box, ot_tensor *part)
{
    const ot__index_tensor *t;
    ot_shape shape = {0};

    OT_TRY(OT_GIVEN(reader));
    OT_TRY(OT_GIVEN(key));
    OT_TRY(OT_GIVEN(box));
    OT_TRY(OT_GIVEN(part));
    t = ot__index_find(&reader->index, key);
    if (t == NULL)
        return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no tensor '%s'", key);
    OT_TRY(ot__boxes_check(&t->shape, box, 1));
    shape.ndim = box->ndim;
    memcpy(shape.dim, box->size, (size_t)box->ndim * sizeof *box->size);
    if (part->dtype != t->dtype || !ot__shape_equal(&part->shape, &shape))
        return ot__error(OT_ERR_INVALID, "'%s': the part is %s%s, expected %s%s", key,
                         ot_dtype_name(part->dtype), OT_SHAPE_TEXT(&part->shape),
                         ot_dtype_name(t->dtype), OT_SHAPE_TEXT(&shape));
    return read_leaves(reader,
                       &(const ot__leaf){.key = t->key,
                                         .dtype = t->dtype,
                                         .shape = t->shape,
                                         .n_parts = 1,
                                         .boxes = box,
                                         .parts = &part},
                       1);
}

// ---- damage ----

static ot_status verify_file(const ot_shards_reader *reader, int i_file)
{
    char *path = ot__path_join(reader->at.folder, reader->index.files[i_file].name);
    ot__file_map map = {0};
    ot_status st = ot__made(path != NULL);

    OT_THEN(st, ot__file_map_open(&map, path));
    if (st == OT_OK) {
        st = ot__index_check_file(&reader->index, i_file, map.data, map.size);
        if (st == OT_ERR_FORMAT)
            (void)ot__error_prefix(st, "%s", reader->at.path);
    }
    ot__file_map_close(&map);
    ot__free(path);
    return st;
}

// Names are told in their order.
static int compare_entry_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_unnamed(const void *context, const char *name)
{
    const ot__map *named = context;

    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, OT_INDEX_NAME) != 0 &&
           ot__map_get(named, name) == NULL;
}

// What is in the directory besides costs space, and nothing else.
static void tell_names(const char *folder, const ot__buf *list)
{
    ot__names names = {.wanted = ""};
    const char **sorted;
    int n = 0;

    for (size_t at = 0; at < list->length; at += strlen(list->data + at) + 1)
        n++;
    sorted = ot__alloc_zero((size_t)n, sizeof *sorted);
    n = 0;
    for (size_t at = 0; sorted != NULL && at < list->length; at += strlen(list->data + at) + 1)
        sorted[n++] = list->data + at;
    if (n > 0)
        qsort(sorted, (size_t)n, sizeof *sorted, compare_entry_names);
    for (int i = 0; i < n; i++)
        ot__names_add(&names, sorted[i]);
    if (n > 0)
        ot__log(OT_LOG_WARNING, "%s: the index does not name: %s", folder,
                ot__names_list(&names, "entries"));
    ot__free(sorted);
}

static ot_status tell_unnamed(const ot_shards_reader *reader)
{
    const ot__index *index = &reader->index;
    ot__map named = {0};
    ot__buf list = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < index->n_files && st == OT_OK; i++)
        st = ot__made(ot__map_put(&named, index->files[i].name, &named));
    for (int i = 0; i < index->n_parts && st == OT_OK; i++)
        st = ot__made(ot__map_put(&named, index->parts[i].name, &named));
    if (st == OT_OK) {
        ot__directory_list(reader->at.path, &(const ot__file_names){is_unnamed, &named}, &list);
        st = ot__buf_status(&list);
    }
    if (st == OT_OK)
        tell_names(reader->at.path, &list);
    ot__buf_deinit(&list);
    ot__map_deinit(&named);
    return st;
}

ot_status ot_shards_reader_verify(const ot_shards_reader *reader)
{
    OT_TRY(OT_GIVEN(reader));
    for (int i = 0; i < reader->index.n_files; i++)
        OT_TRY(verify_file(reader, i));
    return reader->index.is_foreign ? OT_OK : tell_unnamed(reader);
}
