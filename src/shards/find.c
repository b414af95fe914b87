// SPDX-License-Identifier: Apache-2.0
// Where a checkpoint is, or what another tool has made, and its index.
#include <string.h>

#include "shards/shards.h"

bool ot__shards_is_checkpoint(const char *path)
{
    char *index = ot__path_join(path, OT_INDEX_NAME);
    const bool is_there = index != NULL && ot__path_exists(index);

    ot__free(index);
    return is_there;
}

// ---- the directory ----

static ot_status look_for_index(const char *path, bool *is_there)
{
    char *index = ot__path_join(path, OT_INDEX_NAME);

    *is_there = index != NULL && ot__path_exists(index);
    ot__free(index);
    return ot__made(index != NULL);
}

// The one at a path, or what a killed process was about to replace there; NULL: there is none.
static ot_status checkpoint_at(const char *path, char **out)
{
    bool is_there;
    char *old;
    ot_status st;

    *out = NULL;
    OT_TRY(look_for_index(path, &is_there));
    if (is_there) {
        *out = ot__strdup(path);
        return ot__made(*out != NULL);
    }
    old = ot__path_exists(path) ? NULL : ot__staging_find_old(path);
    if (old == NULL)
        return OT_OK;
    st = look_for_index(old, &is_there);
    if (!is_there) {
        ot__free(old);
        return st;
    }
    ot__log(OT_LOG_WARNING, "%s: was being replaced when a process ended, '%s' is what it was",
            path, old);
    *out = old;
    return OT_OK;
}

ot_status ot__shards_read_latest(const char *path, char **out)
{
    ot__file_map map;
    ot__buf name = {0};
    ot_status st;
    uint64_t size;

    OT_TRY(ot__path_file_size(path, &size));
    OT_TRY(ot__file_map_open(&map, path));
    ot__buf_append(&name, map.data, OT_MIN(map.size, (size_t)OT_INDEX_NAME_MAX + 1));
    ot__file_map_close(&map);
    OT_TRY(ot__buf_status(&name));
    name.data[strcspn(name.data, "\n")] = '\0';
    st = name.data[0] != '\0' && strchr(name.data, '/') == NULL && strcmp(name.data, "..") != 0
             ? OT_OK
             : ot__error(OT_ERR_FORMAT, "%s: '%s' is not the name of a directory beside it", path,
                         name.data);
    return OT_HAND_OUT(st, out, name.data, ot__free);
}

static ot_status follow_latest(const char *path, const char *latest, char **out)
{
    char *name = NULL, *named = NULL;
    ot_status st = ot__shards_read_latest(latest, &name);

    if (st == OT_OK) {
        named = ot__path_join(path, name);
        st = ot__made(named != NULL);
    }
    OT_THEN(st, checkpoint_at(named, out));
    if (st == OT_OK && *out == NULL)
        st = ot__error(OT_ERR_NOT_FOUND, "%s: names '%s', where there is no checkpoint", latest,
                       name);
    ot__free(name);
    ot__free(named);
    return st;
}

static ot_status locate_own(const char *path, char **out)
{
    char *latest;
    ot_status st;

    OT_TRY(checkpoint_at(path, out));
    if (*out != NULL)
        return OT_OK;
    latest = ot__path_join(path, "latest");
    OT_TRY(ot__made(latest != NULL));
    st = ot__path_exists(latest) ? follow_latest(path, latest, out)
                                 : ot__error(OT_ERR_NOT_FOUND,
                                             "%s: no checkpoint directory: it has neither '%s' nor "
                                             "'latest'",
                                             path, OT_INDEX_NAME);
    ot__free(latest);
    return st;
}

// Where there is no checkpoint of ours: files of others. *out NULL: neither.
static ot_status locate_foreign(const char *path, char **out)
{
    char *latest = ot__path_join(path, "latest");

    *out = NULL;
    OT_TRY(ot__made(latest != NULL));
    if (!ot__shards_is_checkpoint(path) && !ot__path_exists(latest))
        *out = ot__foreign_find(path);
    ot__free(latest);
    return OT_OK;
}

ot_status ot__located_set(ot__located *at, const char *path, bool is_foreign)
{
    *at = (ot__located){.path = ot__strdup(path), .is_foreign = is_foreign};
    at->folder = is_foreign ? ot__path_folder(path) : ot__strdup(path);
    return ot__made(at->path != NULL && at->folder != NULL);
}

void ot__located_deinit(ot__located *at)
{
    ot__free(at->path);
    ot__free(at->folder);
}

ot_status ot__shards_locate(const char *path, ot__located *out)
{
    char *found;
    bool is_foreign;
    ot_status st;

    OT_TRY(locate_foreign(path, &found));
    is_foreign = found != NULL;
    st = is_foreign ? OT_OK : locate_own(path, &found);
    OT_THEN(st, ot__located_set(out, found, is_foreign));
    ot__free(found);
    return st;
}

ot_status ot__shards_is_foreign(ot_comm *comm, const char *path, bool *is_foreign)
{
    ot__buf mark = {0};
    ot__located at = {0};
    ot__team team;
    ot_status st;

    OT_TRY(ot__team_of(comm, &team));
    st = team.rank == 0 ? ot__shards_locate(path, &at) : OT_OK;
    ot__buf_text(&mark, at.is_foreign ? "f" : "o");
    OT_THEN(st, ot__buf_status(&mark));
    st = ot__team_spread(&team, st, &mark);
    *is_foreign = st == OT_OK && mark.data[0] == 'f';
    ot__located_deinit(&at);
    ot__buf_deinit(&mark);
    return st;
}

// ---- the index ----

static ot_status read_index_text(const char *folder, const char *name, ot__buf *out)
{
    char *path = ot__path_join(folder, name);
    ot__file_map map = {0};
    ot_status st = ot__made(path != NULL);
    uint64_t size;

    OT_THEN(st, ot__path_file_size(path, &size)); // what is no file may have no end
    OT_THEN(st, ot__file_map_open(&map, path));
    if (st == OT_OK && map.size > OT_INDEX_BYTES_MAX)
        st = ot__error(OT_ERR_FORMAT, "%s: has %zu bytes, expected at most %d", path, map.size,
                       OT_INDEX_BYTES_MAX);
    if (st == OT_OK)
        ot__buf_append(out, map.data, map.size);
    OT_THEN(st, ot__buf_status(out));
    ot__file_map_close(&map);
    ot__free(path);
    return st;
}

// What rank 0 reads; all have it then.
static ot_status share_index_text(const ot__team *team, ot_status st, const char *folder,
                                  const char *name, ot__buf *out)
{
    out->length = 0;
    if (team->rank == 0)
        OT_THEN(st, read_index_text(folder, name, out));
    return ot__team_spread(team, st, out);
}

static ot_status take_index_part(ot__index *index, int i_part, const ot__buf *text)
{
    const ot__index_part *part = &index->parts[i_part];

    if (text->length != part->size || ot__crc32c(0, text->data, text->length) != part->crc)
        return ot__error(OT_ERR_FORMAT, "has another size or checksum than '%s' says",
                         OT_INDEX_NAME);
    return ot__index_read_part(index, text->data, text->length);
}

static ot_status name_index_file(ot_status st, const char *folder, const char *name)
{
    return st == OT_ERR_FORMAT ? ot__error_prefix(st, "%s/%s", folder, name) : st;
}

// The files that the index names are there, as long as it says.
static ot_status check_data_files(const ot__index *index, const char *folder)
{
    ot_status st = OT_OK;

    for (int i = 0; i < index->n_files && st == OT_OK; i++) {
        const ot__index_file *f = &index->files[i];
        char *path = ot__path_join(folder, f->name);
        uint64_t size = 0;

        st = ot__made(path != NULL);
        OT_THEN(st, ot__path_file_size(path, &size));
        if (st == OT_OK && size != f->size)
            st = ot__error(OT_ERR_FORMAT, "%s: has %" PRIu64 " bytes, expected %" PRIu64, path,
                           size, f->size);
        ot__free(path);
    }
    return st;
}

// What the files of the index say together, and rank 0 what is there of the others.
static ot_status check_index(const ot__team *team, const char *folder, ot__index *index)
{
    ot_status st = name_index_file(ot__index_check(index), folder, OT_INDEX_NAME);

    if (team->rank == 0)
        OT_THEN(st, check_data_files(index, folder));
    return ot__team_agree(team, st, "load", NULL, 0);
}

static ot_status load_index(const ot__team *team, const char *folder, ot__index *out, ot__buf *text)
{
    ot_status st;

    OT_TRY(share_index_text(team, OT_OK, folder, OT_INDEX_NAME, text));
    st = name_index_file(ot__index_read(text->data, text->length, out), folder, OT_INDEX_NAME);
    st = ot__team_agree(team, st, "load", NULL, 0);
    for (int i = 0; st == OT_OK && i < out->n_parts; i++) {
        st = share_index_text(team, OT_OK, folder, out->parts[i].name, text);
        if (st == OT_OK)
            st = ot__team_agree(
                team, name_index_file(take_index_part(out, i, text), folder, out->parts[i].name),
                "load", NULL, 0);
    }
    return st == OT_OK ? check_index(team, folder, out) : st;
}

ot_status ot__index_load(const ot__team *team, const ot__located *at, ot__index *out)
{
    ot__buf text = {0};
    ot_status st;

    *out = (ot__index){0};
    st = at->is_foreign
             ? ot__team_agree(team, ot__foreign_load(at->path, at->folder, out), "load", NULL, 0)
             : load_index(team, at->folder, out, &text);
    ot__buf_deinit(&text);
    if (st != OT_OK)
        ot__index_deinit(out);
    return st;
}

// Of one process, as far as it must be read for that: writers put them before the rest.
bool ot__index_peek(const char *folder, uint64_t *step, uint64_t *unix_ns)
{
    char *path = ot__path_join(folder, OT_INDEX_NAME);
    ot__file_map map = {0};
    uint64_t size;
    bool is_one = path != NULL && ot__path_file_size(path, &size) == OT_OK &&
                  ot__file_map_open(&map, path) == OT_OK;

    if (is_one) {
        is_one = map.size <= OT_INDEX_BYTES_MAX &&
                 ot__index_read_head((const char *)map.data, map.size, step, unix_ns) == OT_OK;
        ot__file_map_close(&map);
    }
    ot__free(path);
    return is_one;
}
