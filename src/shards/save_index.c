// SPDX-License-Identifier: Apache-2.0
// The last step of a save: rank 0 hears what all have written, writes the index and publishes.
#include <string.h>

#include "shards/saving.h"

// ---- reports ----

typedef struct chunk_report {
    int64_t file; // of its rank
    uint64_t begin, crc;
} chunk_report;

// The number of files, the files, then a report for each part of this rank.
ot_status ot__saving_report(const ot__saving *s, ot__buf *out)
{
    const int64_t n_files = s->files.n_files;
    size_t at;

    ot__buf_append(out, &n_files, sizeof n_files);
    ot__buf_append(out, s->files.files, (size_t)n_files * sizeof *s->files.files);
    at = out->length;
    for (int i = 0; i < s->n_own; i++)
        ot__buf_append(out, &(chunk_report){.file = -1}, sizeof(chunk_report));
    OT_TRY(ot__buf_status(out));
    for (int i = 0; i < s->files.n_chunks; i++) {
        const ot__save_chunk *c = &s->files.chunks[i];
        const chunk_report report = {c->file, c->begin, c->crc};

        memcpy(out->data + at + (size_t)c->number * sizeof report, &report, sizeof report);
    }
    return OT_OK;
}

// ---- the index ----

typedef struct rank_report {
    int64_t first_file; // of the index
    const ot__save_file *files;
    const chunk_report *chunks;
} rank_report;

static ot_status add_index_files(const ot__saving *s, rank_report *ranks, ot__index *index)
{
    for (int r = 0; r < s->team.n; r++) {
        int64_t n_files;

        memcpy(&n_files, s->reports[r].data, sizeof n_files);
        ranks[r].first_file = index->n_files;
        ranks[r].files = (const ot__save_file *)(const void *)(s->reports[r].data + sizeof n_files);
        ranks[r].chunks = (const chunk_report *)(const void *)(ranks[r].files + n_files);
        for (int64_t i = 0; i < n_files; i++) {
            ot__index_file file = {.size = ranks[r].files[i].size,
                                   .data_start = ranks[r].files[i].data_start,
                                   .crc = ranks[r].files[i].crc};
            char name[64];

            ot__save_file_name(r, (int)i, name);
            file.name = ot__arena_strdup(index->arena, name);
            OT_TRY(ot__made(file.name != NULL &&
                            ot__arena_push(index->arena, &index->files, &index->files_capacity,
                                           &index->n_files, &file, sizeof file)));
        }
    }
    return index->n_files <= OT_INDEX_FILES_MAX
               ? OT_OK
               : ot__error(OT_ERR_UNSUPPORTED, "%d files, expected at most %d", index->n_files,
                           OT_INDEX_FILES_MAX);
}

// Records stand in the order of tensors and offsets.
static ot_status add_index_tensors(const ot__saving *s, const rank_report *ranks, ot__index *index)
{
    ot__index_chunk *chunks;
    int64_t n_owned = 0, at = 0;

    for (int64_t i = 0; i < s->n_records; i++)
        n_owned += s->records[i].is_owned;
    if (n_owned > OT_INDEX_CHUNKS_MAX)
        return ot__error(OT_ERR_UNSUPPORTED, "%" PRId64 " parts of tensors, expected at most %d",
                         n_owned, OT_INDEX_CHUNKS_MAX);
    chunks = ot__arena_alloc(index->arena, (size_t)n_owned * sizeof *chunks);
    index->tensors = ot__arena_alloc(index->arena, (size_t)s->leaves.n * sizeof *index->tensors);
    OT_TRY(ot__made(chunks != NULL && index->tensors != NULL));
    for (int i = 0; i < s->leaves.n; i++) {
        const ot__leaf *leaf = &s->leaves.items[i];
        ot__index_tensor *t = &index->tensors[index->n_tensors++];

        *t = (ot__index_tensor){
            .key = leaf->key, .dtype = leaf->dtype, .shape = leaf->shape, .chunks = chunks};
        for (; at < s->n_records && s->records[at].tensor == i; at++) {
            const ot__save_record *r = &s->records[at];
            const chunk_report *report = &ranks[r->rank].chunks[r->number];

            if (r->is_owned)
                chunks[t->n_chunks++] =
                    (ot__index_chunk){.file = (int)(ranks[r->rank].first_file + report->file),
                                      .begin = report->begin,
                                      .crc = (uint32_t)report->crc,
                                      .box = r->box};
        }
        chunks += t->n_chunks;
    }
    return OT_OK;
}

static ot_status write_index_text(const ot__saving *s, const char *name, const ot__buf *text)
{
    char *path = ot__path_join(s->folder, name);
    ot__file_writer *file = NULL;
    ot_status st = ot__made(path != NULL);

    OT_THEN(st, ot__buf_status(text));
    OT_THEN(st, ot__file_writer_open_within(&file, path));
    OT_THEN(st, ot__file_writer_write(file, text->data, text->length));
    if (st == OT_OK)
        st = ot__file_writer_commit(file);
    else
        ot__file_writer_abort(file);
    ot__free(path);
    return st;
}

// The tensors that the first file does not take, in further ones.
static ot_status write_further_files(const ot__saving *s, ot__index *index, int i_tensor)
{
    ot_status st = OT_OK;

    while (i_tensor < index->n_tensors && st == OT_OK) {
        ot__index_part part = {0};
        ot__buf text = {0};
        char name[64];

        ot__index_write_tensors(index, &i_tensor, &text);
        snprintf(name, sizeof name, "otckpt.index-%05d.json", index->n_parts + 1);
        st = write_index_text(s, name, &text);
        if (st == OT_OK) {
            part.name = ot__arena_strdup(index->arena, name);
            part.size = text.length;
            part.crc = ot__crc32c(0, text.data, text.length);
            st = ot__made(part.name != NULL &&
                          ot__arena_push(index->arena, &index->parts, &index->parts_capacity,
                                         &index->n_parts, &part, sizeof part));
        }
        ot__buf_deinit(&text);
    }
    return st;
}

static ot_status write_index_of(const ot__saving *s, ot__index *index)
{
    int n_first = 0;
    ot__buf text = {0};
    ot_status st;

    ot__index_write_tensors(index, &n_first, NULL);
    OT_TRY(write_further_files(s, index, n_first));
    ot__index_write(index, n_first, &text);
    st = write_index_text(s, OT_INDEX_NAME, &text);
    ot__buf_deinit(&text);
    return st;
}

static ot_status make_index(const ot__saving *s, rank_report *ranks, ot__index *index)
{
    index->save_id = s->save_id;
    index->writer = ot__arena_printf(index->arena, "onnxtrain/%d.%d.%d", OT_VERSION_MAJOR,
                                     OT_VERSION_MINOR, OT_VERSION_PATCH);
    index->unix_ns = s->unix_ns;
    index->step = (uint64_t)s->options.step;
    index->world_size = s->team.n;
    index->items = ot__arena_alloc(index->arena, (size_t)s->n_items * sizeof *index->items);
    OT_TRY(ot__made(index->writer != NULL && index->items != NULL));
    for (int i = 0; i < s->n_items; i++)
        index->items[index->n_items++] = (ot__index_item){s->names[i], s->trees[i].data};
    OT_TRY(add_index_files(s, ranks, index));
    OT_TRY(add_index_tensors(s, ranks, index));
    return write_index_of(s, index);
}

// ---- publishing ----

static ot_status name_latest(const ot__saving *s)
{
    const char *slash = strrchr(s->staging.path, '/');
    const char *name = slash != NULL ? slash + 1 : s->staging.path;
    char *path = ot__path_join(s->staging.parent, "latest");
    ot__buf text = {0};
    ot_status st = ot__made(path != NULL);

    ot__buf_printf(&text, "%s\n", name);
    OT_THEN(st, ot__buf_status(&text));
    OT_THEN(st, ot__file_write(path, text.data, text.length));
    ot__buf_deinit(&text);
    ot__free(path);
    return st;
}

ot_status ot__saving_publish(ot__saving *s)
{
    rank_report *ranks = ot__alloc_zero((size_t)s->team.n, sizeof *ranks);
    ot__index index = {.arena = ot__arena_create()};
    ot_status st = ot__made(ranks != NULL && index.arena != NULL);

    OT_THEN(st, make_index(s, ranks, &index));
    ot__arena_destroy(index.arena);
    ot__free(ranks);
    OT_THEN(st, ot__staging_publish(&s->staging, s->options.replaces != 0, s->removed));
    if (s->options.sets_latest)
        OT_THEN(st, name_latest(s));
    if (st == OT_OK && s->options.n_kept > 0)
        ot__shards_retain(s->staging.path, s->options.n_kept, s->removed);
    return st;
}

ot_status ot__saving_collect(ot__saving *s, ot_status st)
{
    ot__buf own = {0};

    s->reports = ot__alloc_zero((size_t)s->team.n, sizeof *s->reports);
    OT_THEN(st, ot__made(s->reports != NULL));
    OT_THEN(st, ot__saving_report(s, &own));
    st = ot__team_gather(&s->team, st, &own, s->reports);
    ot__buf_deinit(&own);
    return st;
}
