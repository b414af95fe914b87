// SPDX-License-Identifier: Apache-2.0
// A save whose files are written by a thread of their own, from a copy. That thread calls no
// communicator: what ranks tell each other they tell in the calls of the caller.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shards/saving.h"

enum { MESSAGE_BYTES = 1024 };

typedef struct packed_copy {
    ot_layout layout;
    ot_shape shape;
    size_t element;
    void *data;
} packed_copy;

struct ot_shards_job {
    ot__saving saving;
    bool is_under_way;
    bool has_thread;
    pthread_t thread;
    _Atomic bool is_written;
    ot_status status; // of the writing
    char message[MESSAGE_BYTES];
    char *copy; // of the elements; kept from save to save
    size_t copy_bytes;
    packed_copy *packed; // which of it the thread makes row-major
    int n_packed;
    size_t buffer_at;       // of the copy: what that takes
    ot__held_files removed; // of checkpoints that the last save has replaced
};

ot_status ot_shards_job_create(ot_shards_job **out)
{
    OT_TRY(OT_OUT(out));
    *out = ot__alloc_zero(1, sizeof **out);
    OT_TRY(ot__made(*out != NULL));
    OT_ENTER(*out);
    return OT_OK;
}

// ---- the copy ----

static size_t bytes_of_own(const ot__save_chunk *c)
{
    return (size_t)ot__box_count(&c->leaf->boxes[c->part]) * ot_dtype_size(c->leaf->dtype);
}

// Boxes are the trees', which may be gone when the thread looks.
static ot_status copy_boxes(ot__leaves *leaves)
{
    for (int i = 0; i < leaves->n; i++) {
        ot__leaf *leaf = &leaves->items[i];

        leaf->boxes = ot__arena_memdup(leaves->arena, leaf->boxes,
                                       (size_t)leaf->n_parts * sizeof *leaf->boxes);
        leaf->parts = NULL;
        OT_TRY(ot__made(leaf->boxes != NULL));
    }
    return OT_OK;
}

static const ot_tensor *tensor_of_chunk(const ot__save_chunk *c)
{
    return c->leaf->parts[c->part];
}

// Behind the copies there is room to change the layout of one.
static ot_status make_room_for_copies(ot_shards_job *job, size_t *buffer_at)
{
    const ot__save_files *files = &job->saving.files;
    size_t n_bytes = 0, n_buffer = 0;

    job->n_packed = 0;
    for (int i = 0; i < files->n_chunks; i++) {
        const ot_tensor *t = tensor_of_chunk(&files->chunks[i]);

        n_bytes += bytes_of_own(&files->chunks[i]);
        job->n_packed += t->layout != NULL;
        if (t->layout != NULL)
            n_buffer = OT_MAX(n_buffer,
                              ot__layout_part_bytes(t->layout, &t->shape, ot_dtype_size(t->dtype)));
    }
    *buffer_at = n_bytes;
    n_bytes += n_buffer;
    job->packed = ot__alloc_zero((size_t)job->n_packed + 1, sizeof *job->packed);
    OT_TRY(ot__made(job->packed != NULL));
    if (n_bytes <= job->copy_bytes)
        return OT_OK;
    ot__free(job->copy);
    job->copy_bytes = 0;
    job->copy = ot__alloc(n_bytes);
    OT_TRY(ot__made(job->copy != NULL));
    job->copy_bytes = n_bytes;
    return OT_OK;
}

static ot_status copy_own_elements(ot_shards_job *job)
{
    ot__save_files *files = &job->saving.files;
    int n_packed = 0;
    size_t at = 0;

    OT_TRY(make_room_for_copies(job, &job->buffer_at));
    for (int i = 0; i < files->n_chunks; i++) {
        const ot_tensor *t = tensor_of_chunk(&files->chunks[i]);
        const size_t n = bytes_of_own(&files->chunks[i]);

        memcpy(job->copy + at, files->chunks[i].data, n);
        files->chunks[i].data = job->copy + at;
        if (t->layout != NULL)
            job->packed[n_packed++] =
                (packed_copy){*t->layout, t->shape, ot_dtype_size(t->dtype), job->copy + at};
        at += n;
    }
    return copy_boxes(&job->saving.leaves);
}

static void make_row_major(ot_shards_job *job)
{
    for (int i = 0; i < job->n_packed; i++) {
        const packed_copy *p = &job->packed[i];

        ot__layout_convert_in_place(p->data, NULL, &p->layout, &p->shape, p->element,
                                    job->copy + job->buffer_at);
    }
}

// ---- the thread ----

static void *write_files_of_job(void *context)
{
    ot_shards_job *job = context;

    make_row_major(job);
    job->status = ot__saving_write(&job->saving);
    if (job->status != OT_OK)
        snprintf(job->message, sizeof job->message, "%s", ot_error_message());
    atomic_store(&job->is_written, true);
    return NULL;
}

static ot_status start_thread(ot_shards_job *job)
{
    OT_TRY(copy_own_elements(job));
    if (pthread_create(&job->thread, NULL, write_files_of_job, job) != 0)
        return ot__error(OT_ERR_NO_MEMORY, "no thread for writing a checkpoint can be made");
    job->has_thread = true;
    return OT_OK;
}

static void join_thread(ot_shards_job *job)
{
    if (job->has_thread)
        pthread_join(job->thread, NULL);
    job->has_thread = false;
}

static void *drop_removed(void *context)
{
    ot__held_files_drop(context);
    return NULL;
}

static void drop_meanwhile(ot_shards_job *job)
{
    if (job->removed.n == 0)
        return;
    job->has_thread = pthread_create(&job->thread, NULL, drop_removed, &job->removed) == 0;
    if (!job->has_thread)
        ot__held_files_drop(&job->removed);
}

// ---- the end of a save ----

static void forget_save(ot_shards_job *job)
{
    join_thread(job);
    ot__free(job->packed);
    job->packed = NULL;
    ot__saving_deinit(&job->saving);
    job->saving = (ot__saving){.staging.fd = -1};
    job->is_under_way = false;
}

static ot_status finish_job(ot_shards_job *job)
{
    ot_status st;

    join_thread(job);
    st = job->status == OT_OK ? OT_OK : ot__error(job->status, "%s", job->message);
    job->saving.removed = &job->removed;
    st = ot__saving_finish(&job->saving, st);
    forget_save(job);
    drop_meanwhile(job);
    return st;
}

// ---- the calls ----

ot_status ot_shards_job_start(ot_shards_job *job, ot_comm *comm, const char *path,
                              const ot_shards_item *items, int n_items,
                              const ot_shards_save_options *options)
{
    ot_status st;

    OT_TRY(OT_GIVEN(job));
    if (job->is_under_way)
        OT_TRY(finish_job(job));
    join_thread(job);
    job->saving = (ot__saving){.staging.fd = -1};
    job->status = OT_OK;
    atomic_store(&job->is_written, false);
    st = ot__saving_look(&job->saving, comm, path, items, n_items, options);
    OT_THEN(st, ot__saving_open(&job->saving));
    OT_THEN(st, ot__saving_plan(&job->saving));
    OT_THEN(st, ot__team_agree(&job->saving.team, start_thread(job), "save", NULL, 0));
    job->is_under_way = st == OT_OK;
    if (st != OT_OK)
        forget_save(job);
    return st;
}

ot_status ot_shards_job_poll(ot_shards_job *job, int *done)
{
    ot_agreement a = OT_AGREEMENT_INIT;
    const ot__team *team;

    OT_TRY(OT_GIVEN(job));
    OT_TRY(OT_GIVEN(done));
    *done = !job->is_under_way;
    if (*done)
        return OT_OK;
    team = &job->saving.team;
    a.call = "save";
    a.all = atomic_load(&job->is_written);
    if (team->comm != NULL)
        OT_TRY(ot_comm_agree(team->comm, &a));
    if (a.all == 0)
        return OT_OK;
    *done = 1;
    return finish_job(job);
}

ot_status ot_shards_job_wait(ot_shards_job *job)
{
    ot_status st = OT_OK;

    OT_TRY(OT_GIVEN(job));
    if (job->is_under_way)
        st = finish_job(job);
    join_thread(job);
    return st;
}

void ot_shards_job_destroy(ot_shards_job *job)
{
    if (!OT_ENDS(job))
        return;
    if (job->is_under_way)
        forget_save(job);
    join_thread(job);
    ot__free(job->copy);
    ot__handle_leave(job);
    ot__free(job);
}
