// SPDX-License-Identifier: Apache-2.0
// Saves a checkpoint directory: the ranks agree on what there is, rank 0 decides who writes what,
// all write, rank 0 writes the index and publishes. Every step ends with an agreement, so that a
// failure of one is that of all, and nobody writes any more when rank 0 removes what there is.
#include <string.h>
#include <time.h>

#include "shards/saving.h"

// ---- 1: what there is ----

static uint64_t hash_leaves(const ot__leaves *leaves)
{
    uint64_t id = 0;

    for (int i = 0; i < leaves->n; i++) {
        const ot__leaf *leaf = &leaves->items[i];

        id = ot__id_mix(id, leaf->key, strlen(leaf->key));
        id = ot__id_mix_word(id, (uint64_t)leaf->dtype);
        id = ot__id_mix(id, leaf->shape.dim, (size_t)leaf->shape.ndim * sizeof *leaf->shape.dim);
    }
    return id;
}

static uint64_t hash_options(const ot_shards_save_options *o)
{
    const int64_t words[] = {o->replaces, o->sets_latest, o->n_kept, o->step, o->file_bytes_max};

    return ot__id_mix(0, words, sizeof words);
}

static ot_status check_save_options(const ot_shards_save_options *o)
{
    enum { STEP_BITS = 53 };

    if (o->step < 0 || o->step >= INT64_C(1) << STEP_BITS)
        return ot__error(OT_ERR_INVALID, "step is %" PRId64 ", expected 0 to 2^%d - 1", o->step,
                         STEP_BITS);
    if (o->file_bytes_max < 1)
        return ot__error(OT_ERR_INVALID, "file_bytes_max is %" PRId64 ", expected 1 or more",
                         o->file_bytes_max);
    if (o->n_kept < 0)
        return ot__error(OT_ERR_INVALID, "n_kept is %d, expected 0 or more", o->n_kept);
    return OT_OK;
}

ot_status ot__saving_options(ot__saving *s, const ot_shards_save_options *options)
{
    OT_TRY(
        OT_OPTIONS_READ(ot_shards_save_options, OT_SHARDS_SAVE_OPTIONS_INIT, options, &s->options));
    return check_save_options(&s->options);
}

// Trees first: what JSON cannot hold is too deep for the walk over tensors, too.
static ot_status look_at_items(ot__saving *s, const ot_shards_item *items, int n_items)
{
    s->trees = ot__alloc_zero((size_t)n_items, sizeof *s->trees);
    s->names = ot__alloc_zero((size_t)n_items, sizeof *s->names);
    OT_TRY(ot__made(s->trees != NULL && s->names != NULL));
    for (int i = 0; i < n_items; i++) {
        ot_status st = ot__values_write(items[i].dict, &s->trees[i]);

        s->n_items = i + 1;
        s->names[i] = ot__strdup(items[i].name);
        if (st != OT_OK)
            return st == OT_ERR_NO_MEMORY ? st : ot__error_prefix(st, "item '%s'", items[i].name);
        OT_TRY(ot__made(s->names[i] != NULL));
    }
    return ot__leaves_of(items, n_items, &s->leaves);
}

static ot_status read_save_call(ot__saving *s, const char *path, const ot_shards_item *items,
                                int n_items, const ot_shards_save_options *options)
{
    ot_shards_item *own;
    ot_status st;

    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_GIVEN_MANY(items, n_items));
    OT_TRY(
        OT_OPTIONS_READ(ot_shards_save_options, OT_SHARDS_SAVE_OPTIONS_INIT, options, &s->options));
    OT_TRY(check_save_options(&s->options));
    s->path = ot__strdup(path);
    own = ot__alloc_zero((size_t)n_items, sizeof *own);
    st = ot__made(s->path != NULL && own != NULL);
    OT_THEN(st, ot__items_read(items, n_items, own));
    OT_THEN(st, look_at_items(s, own, n_items));
    ot__free(own);
    return st;
}

ot_status ot__saving_look(ot__saving *s, ot_comm *comm, const char *path,
                          const ot_shards_item *items, int n_items,
                          const ot_shards_save_options *options)
{
    uint64_t values = 0;
    ot_status st;

    OT_TRY(ot__team_of(comm, &s->team));
    st = read_save_call(s, path, items, n_items, options);
    for (int i = 0; st == OT_OK && i < s->n_items; i++) {
        values = ot__id_mix(values, s->names[i], strlen(s->names[i]));
        values = ot__id_mix(values, s->trees[i].data, s->trees[i].length);
    }
    return ot__team_agree(
        &s->team, st, "save",
        (const ot_agree_field[]){
            {"the path", st == OT_OK ? ot__id_mix(0, s->path, strlen(s->path)) : 0},
            {"the options", hash_options(&s->options)},
            {"the names and values", values},
            {"the names, types and shapes of tensors", hash_leaves(&s->leaves)}},
        4);
}

// ---- 2: where it is written ----

static ot_status open_staging(ot__saving *s)
{
    struct timespec now;
    char id[OT_HEX_ID_LENGTH + 1];

    if (!s->options.replaces && ot__path_exists(s->path) && ot__shards_is_checkpoint(s->path))
        return ot__error(OT_ERR_IO, "%s: there is a checkpoint already, which is not replaced",
                         s->path);
    if (s->options.replaces && ot__path_is_folder(s->path) && !ot__shards_is_checkpoint(s->path) &&
        !ot__directory_is_empty(s->path))
        return ot__error(OT_ERR_IO, "%s: is no checkpoint, and is not replaced", s->path);
    OT_TRY(ot__staging_open(&s->staging, s->path));
    clock_gettime(CLOCK_REALTIME, &now);
    s->unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    ot__id_text(ot__id_fresh(), id);
    ot__buf_printf(&s->place, "%s%s", id, s->staging.place);
    return ot__buf_status(&s->place);
}

// Directories that other machines make are not seen at once everywhere.
static ot_status await_directory(const char *place)
{
    enum { WAIT_MS = 10, WAITS = 3000 };

    for (int i = 0; i < WAITS; i++) {
        if (ot__path_is_folder(place))
            return OT_OK;
        (void)nanosleep(&(const struct timespec){.tv_nsec = WAIT_MS * 1000000}, NULL);
    }
    return ot__error(
        OT_ERR_MISMATCH,
        "%s: is not seen, rank 0 has made it: all ranks must have the same file system", place);
}

ot_status ot__saving_open(ot__saving *s)
{
    ot_status st = s->team.rank == 0 ? open_staging(s) : OT_OK;

    OT_TRY(ot__team_spread(&s->team, st, &s->place));
    s->folder = s->place.data + OT_HEX_ID_LENGTH;
    memcpy(s->save_id, s->place.data, OT_HEX_ID_LENGTH);
    return OT_OK;
}

ot_status ot__saving_enter(ot__saving *s)
{
    if (s->team.rank > 0)
        return await_directory(s->folder);
    OT_TRY(ot__directory_sync(s->staging.parent));
    ot__staging_sweep(s->staging.parent);
    return OT_OK;
}

// ---- 3: who writes what ----

void ot__saving_list_part(int tensor, const ot_box *box, ot__buf *out)
{
    const int64_t head[] = {tensor, 2 * (int64_t)box->ndim};
    const size_t n = (size_t)box->ndim * sizeof(int64_t);

    ot__buf_append(out, head, sizeof head);
    ot__buf_append(out, box->offset, n);
    ot__buf_append(out, box->size, n);
}

static void list_parts(const ot__leaves *leaves, ot__buf *out, int *n_records)
{
    *n_records = 0;
    for (int i = 0; i < leaves->n; i++) {
        const ot__leaf *leaf = &leaves->items[i];

        for (int k = 0; k < leaf->n_parts; k++, (*n_records)++)
            ot__saving_list_part(i, &leaf->boxes[k], out);
    }
}

static int64_t count_parts(const ot__buf *all, int n_ranks)
{
    int64_t n = 0;

    for (int r = 0; r < n_ranks; r++) {
        const int64_t *words = (const int64_t *)(const void *)all[r].data;

        for (size_t at = 0; at < all[r].length / sizeof *words; at += 2 + (size_t)words[at + 1])
            n++;
    }
    return n;
}

static void read_part_records(const ot__buf *all, int n_ranks, ot__save_record *records)
{
    int64_t n = 0;

    for (int r = 0; r < n_ranks; r++) {
        const int64_t *words = (const int64_t *)(const void *)all[r].data;
        int number = 0;

        for (size_t at = 0; at < all[r].length / sizeof *words; at += 2 + (size_t)words[at + 1])
            records[n++] = (ot__save_record){
                .tensor = (int)words[at], .rank = r, .number = number++, .box = words + at + 2};
    }
}

ot_status ot__saving_plan_all(ot__saving *s, ot__buf *marks)
{
    ot_status st;

    s->n_records = count_parts(s->parts, s->team.n);
    s->records = ot__alloc_zero((size_t)s->n_records, sizeof *s->records);
    st = ot__made(s->records != NULL);
    if (st == OT_OK) {
        read_part_records(s->parts, s->team.n, s->records);
        for (int64_t i = 0; i < s->n_records; i++)
            ot__buf_append(&marks[s->records[i].rank], "", 1);
    }
    OT_THEN(st, ot__plan_save(&s->leaves, s->records, s->n_records, s->team.n));
    for (int r = 0; r < s->team.n; r++)
        OT_THEN(st, ot__buf_status(&marks[r]));
    for (int64_t i = 0; st == OT_OK && i < s->n_records; i++)
        marks[s->records[i].rank].data[s->records[i].number] = (char)s->records[i].is_owned;
    return st;
}

static ot_status list_own_chunks(ot__saving *s, const ot__buf *mark)
{
    int n = 0, number = 0;

    for (size_t i = 0; i < mark->length; i++)
        n += mark->data[i] != 0;
    s->files.chunks = ot__alloc_zero((size_t)n, sizeof *s->files.chunks);
    OT_TRY(ot__made(s->files.chunks != NULL));
    for (int i = 0; i < s->leaves.n; i++)
        for (int k = 0; k < s->leaves.items[i].n_parts; k++)
            if (mark->data[number++] != 0)
                s->files.chunks[s->files.n_chunks++] =
                    (ot__save_chunk){.leaf = &s->leaves.items[i],
                                     .part = k,
                                     .number = number - 1,
                                     .data = s->leaves.items[i].parts[k]->data};
    return OT_OK;
}

ot_status ot__saving_plan(ot__saving *s)
{
    ot__buf own = {0}, mark = {0};
    ot__buf *marks = ot__alloc_zero((size_t)s->team.n, sizeof *marks);
    ot_status st;

    s->parts = ot__alloc_zero((size_t)s->team.n, sizeof *s->parts);
    st = ot__made(marks != NULL && s->parts != NULL);
    list_parts(&s->leaves, &own, &s->n_own);
    st = ot__team_gather(&s->team, st, &own, s->parts);
    if (st == OT_OK) {
        if (s->team.rank == 0)
            st = ot__saving_plan_all(s, marks);
        st = ot__team_scatter(&s->team, st, marks, &mark);
    }
    if (st == OT_OK)
        st = ot__team_agree(&s->team, list_own_chunks(s, &mark), "save", NULL, 0);
    for (int r = 0; marks != NULL && r < s->team.n; r++)
        ot__buf_deinit(&marks[r]);
    ot__free(marks);
    ot__buf_deinit(&own);
    ot__buf_deinit(&mark);
    return st;
}

// ---- 4: the files of this rank ----

ot_status ot__saving_write(ot__saving *s)
{
    s->files.rank = s->team.rank;
    memcpy(s->files.save_id, s->save_id, sizeof s->save_id);
    s->files.file_bytes_max = s->options.file_bytes_max;
    return ot__save_files_write(&s->files, s->folder);
}

// ---- the call ----

void ot__saving_deinit(ot__saving *s)
{
    ot__staging_close(&s->staging);
    ot__save_files_deinit(&s->files);
    ot__leaves_deinit(&s->leaves);
    for (int i = 0; i < s->n_items; i++) {
        ot__buf_deinit(&s->trees[i]);
        ot__free(s->names[i]);
    }
    for (int r = 0; s->parts != NULL && r < s->team.n; r++)
        ot__buf_deinit(&s->parts[r]);
    for (int r = 0; s->reports != NULL && r < s->team.n; r++)
        ot__buf_deinit(&s->reports[r]);
    ot__free(s->reports);
    ot__buf_deinit(&s->place);
    ot__free(s->parts);
    ot__free(s->records);
    ot__free(s->trees);
    ot__free(s->names);
    ot__free(s->path);
}

static ot_status enter_and_write(ot__saving *s)
{
    OT_TRY(ot__saving_enter(s));
    return ot__saving_write(s);
}

ot_status ot_shards_save(ot_comm *comm, const char *path, const ot_shards_item *items, int n_items,
                         const ot_shards_save_options *options)
{
    ot__saving s = {.staging.fd = -1};
    ot_status st = ot__saving_look(&s, comm, path, items, n_items, options);

    OT_THEN(st, ot__saving_open(&s));
    OT_THEN(st, ot__saving_plan(&s));
    OT_THEN(st, ot__saving_collect(&s, enter_and_write(&s)));
    OT_THEN(st, ot__team_agree(&s.team, s.team.rank == 0 ? ot__saving_publish(&s) : OT_OK, "save",
                               NULL, 0));
    ot__saving_deinit(&s);
    return st;
}
