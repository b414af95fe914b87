// SPDX-License-Identifier: Apache-2.0
// Safetensors files of other makers as a checkpoint of one item: a single file, or several that a
// file of names lists, as Hugging Face has them. They have no checksums.
#include <string.h>

#include "shards/shards.h"

#define FOREIGN_ITEM "model"
static const char single_name[] = "model.safetensors";
static const char list_name[] = "model.safetensors.index.json";

// ---- one file ----

static ot_status add_chunk(ot__index *index, const ot__safetensor *from, ot__index_tensor *t)
{
    const size_t n = (size_t)from->ndim;
    ot__index_chunk *chunk = ot__arena_alloc(index->arena, sizeof *chunk);
    int64_t *box = ot__arena_alloc(index->arena, (2 * n + 1) * sizeof *box);

    OT_TRY(ot__made(chunk != NULL && box != NULL));
    memset(box, 0, n * sizeof *box);
    memcpy(box + n, t->shape.dim, n * sizeof *box);
    box[2 * n] = (int64_t)(from->end - from->begin);
    *chunk = (ot__index_chunk){.file = index->n_files - 1, .begin = from->begin, .box = box};
    t->chunks = chunk;
    t->n_chunks = 1;
    index->n_chunks++;
    return OT_OK;
}

static ot_status add_foreign_tensor(ot__index *index, const ot__safetensor *from)
{
    ot__index_tensor t = {.dtype = from->dtype, .shape.ndim = from->ndim};

    if (ot_dtype_size(from->dtype) == 0)
        return ot__error(OT_ERR_UNSUPPORTED, "tensor '%s': types below 8 bits are not read",
                         from->name);
    if (from->ndim > 0)
        memcpy(t.shape.dim, from->dims, (size_t)from->ndim * sizeof *from->dims);
    t.key = ot__arena_printf(index->arena, FOREIGN_ITEM ".%s", from->name);
    OT_TRY(ot__made(t.key != NULL));
    if (from->end > from->begin)
        OT_TRY(add_chunk(index, from, &t));
    return ot__made(ot__arena_push(index->arena, &index->tensors, &index->tensors_capacity,
                                   &index->n_tensors, &t, sizeof t));
}

static ot_status add_content(ot__index *index, const char *name, const ot__file_map *map)
{
    ot__safetensors found = {0};
    ot__index_file file = {.size = map->size};
    ot_status st = ot__safetensors_read(map->data, map->size, &found);

    file.name = ot__arena_strdup(index->arena, name);
    file.data_start = found.data_start;
    OT_THEN(st, ot__made(file.name != NULL &&
                         ot__arena_push(index->arena, &index->files, &index->files_capacity,
                                        &index->n_files, &file, sizeof file)));
    for (int i = 0; i < found.n_tensors && st == OT_OK; i++)
        st = add_foreign_tensor(index, &found.tensors[i]);
    ot__safetensors_deinit(&found);
    return st;
}

static ot_status add_file(ot__index *index, const char *folder, const char *name)
{
    char *path = ot__path_join(folder, name);
    ot__file_map map = {0};
    uint64_t size;
    ot_status st = ot__made(path != NULL);

    OT_THEN(st, ot__path_file_size(path, &size));
    OT_THEN(st, ot__file_map_open(&map, path));
    if (st == OT_OK) {
        st = add_content(index, name, &map);
        if (st == OT_ERR_FORMAT || st == OT_ERR_UNSUPPORTED)
            (void)ot__error_prefix(st, "%s", path);
    }
    ot__file_map_close(&map);
    ot__free(path);
    return st;
}

// ---- a list of files ----

// Each file once, in the order in which they are named.
static ot_status take_listed_file(ot__index *index, const char *folder, const char *name)
{
    for (int i = 0; i < index->n_files; i++)
        if (strcmp(index->files[i].name, name) == 0)
            return OT_OK;
    OT_TRY(ot__index_check_name(name));
    if (index->n_files == OT_INDEX_FILES_MAX)
        return ot__error(OT_ERR_FORMAT, "more than %d files", OT_INDEX_FILES_MAX);
    return add_file(index, folder, name);
}

// { "<tensor>": "<file>", ... }
static ot_status read_weight_map(ot__json_scan *scan, ot__index *index, const char *folder)
{
    const char *name, *file;
    bool has_more;

    OT_TRY(ot__json_scan_open(scan, '{'));
    for (;;) {
        OT_TRY(ot__json_scan_next(scan, &name, &has_more));
        if (!has_more)
            return OT_OK;
        OT_TRY(ot__json_scan_string(scan, &file));
        OT_TRY(take_listed_file(index, folder, file));
    }
}

static ot_status read_list_of_files(ot__json_scan *scan, ot__index *index, const char *folder)
{
    const char *name;
    bool has_more;

    OT_TRY(ot__json_scan_open(scan, '{'));
    for (;;) {
        OT_TRY(ot__json_scan_next(scan, &name, &has_more));
        if (!has_more)
            return ot__json_scan_end(scan);
        OT_TRY(strcmp(name, "weight_map") == 0 ? read_weight_map(scan, index, folder)
                                               : ot__json_scan_skip(scan));
    }
}

static ot_status add_listed_files(ot__index *index, const char *folder, const char *path)
{
    ot__json_scan scan;
    ot__file_map map;
    ot_status st;

    OT_TRY(ot__file_map_open(&map, path));
    st = ot__json_scan_init(&scan, (const char *)map.data, map.size);
    OT_THEN(st, read_list_of_files(&scan, index, folder));
    if (st == OT_OK && index->n_files == 0)
        st = ot__error(OT_ERR_FORMAT, "no file is named by a 'weight_map'");
    if (st == OT_ERR_FORMAT)
        (void)ot__error_prefix(st, "%s", path);
    ot__json_scan_deinit(&scan);
    ot__file_map_close(&map);
    return st;
}

// ---- all ----

static ot_status add_foreign_item(ot__index *index)
{
    ot__index_item item = {.name = FOREIGN_ITEM};
    ot__buf tree = {0};
    ot_status st;

    ot__json_open(&tree, NULL, '{');
    for (int i = 0; i < index->n_tensors; i++)
        ot__json_raw(&tree, index->tensors[i].key + sizeof FOREIGN_ITEM, "[\"tensor\"]");
    ot__json_close(&tree, '}');
    st = ot__buf_status(&tree);
    if (st == OT_OK) {
        item.json = ot__arena_strdup(index->arena, tree.data);
        st = ot__made(item.json != NULL &&
                      ot__arena_push(index->arena, &index->items, &index->items_capacity,
                                     &index->n_items, &item, sizeof item));
    }
    ot__buf_deinit(&tree);
    return st;
}

static bool is_list_of_files(const char *path)
{
    const size_t n = strlen(path), n_end = sizeof ".index.json" - 1;

    return n > n_end && strcmp(path + n - n_end, ".index.json") == 0;
}

char *ot__foreign_find(const char *path)
{
    const char *const names[] = {list_name, single_name};
    uint64_t size;

    if (!ot__path_is_folder(path))
        return ot__path_file_size(path, &size) == OT_OK ? ot__strdup(path) : NULL;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        char *inner = ot__path_join(path, names[i]);

        if (inner != NULL && ot__path_file_size(inner, &size) == OT_OK)
            return inner;
        ot__free(inner);
    }
    return NULL;
}

ot_status ot__foreign_load(const char *path, const char *folder, ot__index *out)
{
    const char *slash = strrchr(path, '/');
    ot_status st;

    *out = (ot__index){.arena = ot__arena_create(),
                       .world_size = 1,
                       .is_foreign = true,
                       .n_prefix = sizeof FOREIGN_ITEM};
    st = ot__made(out->arena != NULL);
    OT_THEN(st, is_list_of_files(path) ? add_listed_files(out, folder, path)
                                       : add_file(out, folder, slash != NULL ? slash + 1 : path));
    OT_THEN(st, add_foreign_item(out));
    if (st == OT_OK) {
        st = ot__index_check_content(out);
        if (st == OT_ERR_FORMAT)
            (void)ot__error_prefix(st, "%s", path);
    }
    if (st != OT_OK)
        ot__index_deinit(out);
    return st;
}
