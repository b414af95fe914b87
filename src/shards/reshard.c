// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint again as another number of ranks would: one chunk at a time, by one process.
#include <string.h>

#include "shards/saving.h"

typedef struct resharding {
    ot__index index;
    ot__located from;
    ot__saving saving;
    ot_tensor *chunk; // that was read last
} resharding;

// ---- who has what ----

// Rows of the first axis, rounded up; what has no axes all ranks have.
static ot_status cut_rows(ot__arena *arena, const ot_shape *shape, int n_ranks, ot__leaf *leaf)
{
    const int64_t rows = shape->ndim > 0 ? shape->dim[0] : 1;
    const int64_t step = (rows + n_ranks - 1) / n_ranks;
    ot_box *boxes = ot__arena_alloc(arena, (size_t)n_ranks * sizeof *boxes);
    int64_t count;

    OT_TRY(ot__made(boxes != NULL));
    leaf->boxes = boxes;
    (void)ot__shape_count(shape, &count);
    for (int64_t at = 0; count > 0 && at < rows; at += step) {
        ot_box *box = &boxes[leaf->n_parts++];

        box->ndim = shape->ndim;
        memcpy(box->size, shape->dim, sizeof box->size);
        if (shape->ndim > 0) {
            box->offset[0] = at;
            box->size[0] = OT_MIN(step, rows - at);
        }
    }
    return OT_OK;
}

static ot_status cut_tensors(resharding *r)
{
    ot__leaves *leaves = &r->saving.leaves;

    leaves->arena = ot__arena_create();
    OT_TRY(ot__made(leaves->arena != NULL));
    leaves->items =
        ot__arena_alloc(leaves->arena, (size_t)r->index.n_tensors * sizeof *leaves->items);
    OT_TRY(ot__made(leaves->items != NULL));
    for (; leaves->n < r->index.n_tensors; leaves->n++) {
        const ot__index_tensor *t = &r->index.tensors[leaves->n];
        ot__leaf *leaf = &leaves->items[leaves->n];

        *leaf = (ot__leaf){.key = t->key, .dtype = t->dtype, .shape = t->shape};
        OT_TRY(cut_rows(leaves->arena, &t->shape, r->saving.team.n, leaf));
    }
    return OT_OK;
}

// Part `rank` of a leaf, or the only one; -1: that rank has nothing of it.
static int part_of_rank(const ot__leaf *leaf, int rank)
{
    if (leaf->shape.ndim == 0)
        return 0;
    return rank < leaf->n_parts ? rank : -1;
}

static void list_parts_of_rank(const ot__leaves *leaves, int rank, ot__buf *out)
{
    for (int i = 0; i < leaves->n; i++) {
        const int part = part_of_rank(&leaves->items[i], rank);

        if (part >= 0)
            ot__saving_list_part(i, &leaves->items[i].boxes[part], out);
    }
}

static ot_status plan_all(resharding *r, ot__buf *marks)
{
    ot__saving *s = &r->saving;

    s->parts = ot__alloc_zero((size_t)s->team.n, sizeof *s->parts);
    OT_TRY(ot__made(s->parts != NULL));
    for (int rank = 0; rank < s->team.n; rank++) {
        list_parts_of_rank(&s->leaves, rank, &s->parts[rank]);
        OT_TRY(ot__buf_status(&s->parts[rank]));
    }
    return ot__saving_plan_all(s, marks);
}

// ---- the files ----

static ot_status fetch_chunk(void *context, const ot__save_chunk *chunk, const void **data)
{
    resharding *r = context;
    const ot_box *box = &chunk->leaf->boxes[chunk->part];
    ot_shape shape = {.ndim = box->ndim};
    ot__leaf leaf = *chunk->leaf;
    ot__read_counts counts = {0};
    ot__portions portions = {0};
    ot_status st;

    memcpy(shape.dim, box->size, sizeof shape.dim);
    ot_tensor_destroy(r->chunk);
    r->chunk = NULL;
    OT_TRY(ot_tensor_create(leaf.dtype, &shape, &r->chunk));
    leaf.n_parts = 1;
    leaf.boxes = box;
    leaf.parts = &r->chunk;
    st = ot__plan_load(ot__index_find(&r->index, leaf.key), &leaf, false, &portions);
    ot__portions_sort(&portions);
    OT_THEN(st,
            ot__portions_read(&r->index, r->from.folder, &portions, OT_SHARDS_VERIFY_ALL, &counts));
    ot__free(portions.items);
    *data = r->chunk->data;
    return st;
}

static ot_status list_chunks_of_rank(ot__saving *s, int rank, const ot__buf *mark)
{
    s->files.chunks = ot__alloc_zero((size_t)s->leaves.n, sizeof *s->files.chunks);
    OT_TRY(ot__made(s->files.chunks != NULL));
    s->n_own = 0;
    for (int i = 0; i < s->leaves.n; i++) {
        const int part = part_of_rank(&s->leaves.items[i], rank);

        if (part < 0)
            continue;
        if (mark->data[s->n_own] != 0)
            s->files.chunks[s->files.n_chunks++] =
                (ot__save_chunk){.leaf = &s->leaves.items[i], .part = part, .number = s->n_own};
        s->n_own++;
    }
    return OT_OK;
}

static ot_status write_rank(resharding *r, int rank, const ot__buf *mark, ot__buf *report)
{
    ot__saving *s = &r->saving;
    ot_status st = list_chunks_of_rank(s, rank, mark);

    s->team.rank = rank;
    s->files.fetch = fetch_chunk;
    s->files.context = r;
    OT_THEN(st, ot__saving_write(s));
    OT_THEN(st, ot__saving_report(s, report));
    s->team.rank = 0;
    ot__save_files_deinit(&s->files);
    return st;
}

static ot_status write_all(resharding *r)
{
    const int n = r->saving.team.n;
    ot__buf *marks = ot__alloc_zero((size_t)n, sizeof *marks);
    ot_status st = ot__made(marks != NULL);

    r->saving.reports = ot__alloc_zero((size_t)n, sizeof *r->saving.reports);
    OT_THEN(st, ot__made(r->saving.reports != NULL));
    OT_THEN(st, ot__saving_open(&r->saving));
    OT_THEN(st, ot__saving_enter(&r->saving));
    OT_THEN(st, plan_all(r, marks));
    for (int rank = 0; rank < n && st == OT_OK; rank++)
        st = write_rank(r, rank, &marks[rank], &r->saving.reports[rank]);
    OT_THEN(st, ot__saving_publish(&r->saving));
    for (int rank = 0; marks != NULL && rank < n; rank++)
        ot__buf_deinit(&marks[rank]);
    ot__free(marks);
    return st;
}

// ---- the call ----

static ot_status take_trees(resharding *r)
{
    ot__saving *s = &r->saving;

    s->trees = ot__alloc_zero((size_t)r->index.n_items, sizeof *s->trees);
    s->names = ot__alloc_zero((size_t)r->index.n_items, sizeof *s->names);
    OT_TRY(ot__made(s->trees != NULL && s->names != NULL));
    for (int i = 0; i < r->index.n_items; i++) {
        s->n_items = i + 1;
        s->names[i] = ot__strdup(r->index.items[i].name);
        ot__buf_text(&s->trees[i], r->index.items[i].json);
        OT_TRY(ot__made(s->names[i] != NULL));
        OT_TRY(ot__buf_status(&s->trees[i]));
    }
    return OT_OK;
}

static ot_status read_reshard_call(resharding *r, const char *path, const char *to, int n_ranks,
                                   const ot_shards_save_options *options)
{
    enum { RANKS_MOST = 1 << 16 };
    const ot__team alone = {.n = 1};

    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_GIVEN(to));
    OT_TRY(ot__saving_options(&r->saving, options));
    if (n_ranks < 1 || n_ranks > RANKS_MOST)
        return ot__error(OT_ERR_INVALID, "n_ranks is %d, expected 1 to %d", n_ranks, RANKS_MOST);
    r->saving.team = (ot__team){.n = n_ranks};
    r->saving.path = ot__strdup(to);
    OT_TRY(ot__made(r->saving.path != NULL));
    OT_TRY(ot__shards_locate(path, &r->from));
    OT_TRY(ot__index_load(&alone, &r->from, &r->index));
    r->saving.options.step = (int64_t)r->index.step;
    OT_TRY(take_trees(r));
    return cut_tensors(r);
}

ot_status ot_shards_reshard(const char *path, const char *to, int n_ranks,
                            const ot_shards_save_options *options)
{
    resharding r = {.saving.staging.fd = -1};
    ot_status st = read_reshard_call(&r, path, to, n_ranks, options);

    OT_THEN(st, write_all(&r));
    ot__saving_deinit(&r.saving);
    ot_tensor_destroy(r.chunk);
    ot__index_deinit(&r.index);
    ot__located_deinit(&r.from);
    return st;
}
