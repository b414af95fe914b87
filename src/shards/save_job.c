// SPDX-License-Identifier: Apache-2.0
// A save whose files are written by a thread of their own, from a copy: first those of this rank
// and then, once all have theirs, on rank 0 the index, which is published. That thread calls no
// communicator: what ranks tell each other they tell in the calls of the caller, which in turn work
// on no files.
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

typedef enum job_phase {
    JOB_IDLE,
    JOB_WRITING,
    JOB_PUBLISHING, // all have written
} job_phase;

struct ot_shards_job {
    ot__saving saving;
    job_phase phase;
    bool has_thread;
    pthread_t thread;
    ot__file_watch *watch;
    _Atomic bool is_done; // what this rank has to do in this phase
    ot_status status;     // of that
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
    (*out)->saving.staging.fd = -1;
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
static ot_status make_room_for_copies(ot_shards_job *job, const ot__save_files *files,
                                      size_t *buffer_at)
{
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

    OT_TRY(make_room_for_copies(job, files, &job->buffer_at));
    job->packed = ot__alloc_zero((size_t)job->n_packed + 1, sizeof *job->packed);
    OT_TRY(ot__made(job->packed != NULL));
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

static ot_status write_own_files(ot_shards_job *job)
{
    OT_TRY(ot__saving_enter(&job->saving));
    make_row_major(job);
    return ot__saving_write(&job->saving);
}

// What has not been published is removed here already.
static ot_status publish_all_files(ot_shards_job *job)
{
    const ot_status st = ot__saving_publish(&job->saving);

    if (st != OT_OK)
        ot__staging_close(&job->saving.staging);
    return st;
}

static void work_on_phase(ot_shards_job *job)
{
    job->status = job->phase == JOB_WRITING ? write_own_files(job) : publish_all_files(job);
    if (job->status != OT_OK)
        snprintf(job->message, sizeof job->message, "%s", ot_error_message());
    atomic_store(&job->is_done, true);
}

// What checkpoints that are gone had in memory is given back when nobody waits any more.
static void *run_job_thread(void *context)
{
    ot_shards_job *job = context;

    ot__file_watch_set(job->watch);
    work_on_phase(job);
    ot__held_files_drop(&job->removed);
    return NULL;
}

static void join_thread(ot_shards_job *job)
{
    if (job->has_thread)
        pthread_join(job->thread, NULL);
    job->has_thread = false;
}

// False: there is none.
static bool start_thread(ot_shards_job *job, job_phase phase)
{
    job->phase = phase;
    job->watch = ot__file_watch_get();
    job->status = OT_OK;
    atomic_store(&job->is_done, false);
    job->has_thread = pthread_create(&job->thread, NULL, run_job_thread, job) == 0;
    return job->has_thread;
}

static ot_status status_of_phase(const ot_shards_job *job)
{
    return job->status == OT_OK ? OT_OK : ot__error(job->status, "%s", job->message);
}

// ---- the end of a save ----

// Without waiting for the thread, which has come to its end but for what was removed.
static void forget_save(ot_shards_job *job)
{
    ot__free(job->packed);
    job->packed = NULL;
    ot__saving_deinit(&job->saving);
    job->saving = (ot__saving){.staging.fd = -1};
    job->phase = JOB_IDLE;
}

// All ranks have written.
static ot_status begin_publishing(ot_shards_job *job, bool by_thread)
{
    ot_status st;

    join_thread(job);
    st = ot__saving_collect(&job->saving, status_of_phase(job));
    if (st != OT_OK) {
        forget_save(job);
        return st;
    }
    job->saving.removed = &job->removed;
    if (job->saving.team.rank > 0)
        job->phase = JOB_PUBLISHING; // and there is nothing to do
    else if (!by_thread || !start_thread(job, JOB_PUBLISHING)) {
        job->phase = JOB_PUBLISHING;
        work_on_phase(job);
    }
    return OT_OK;
}

// Rank 0 has published.
static ot_status end_job_save(ot_shards_job *job)
{
    const ot_status st = ot__team_agree(&job->saving.team, status_of_phase(job), "save", NULL, 0);

    forget_save(job);
    return st;
}

static ot_status finish_job(ot_shards_job *job)
{
    if (job->phase == JOB_WRITING)
        OT_TRY(begin_publishing(job, false));
    join_thread(job);
    return end_job_save(job);
}

// ---- the calls ----

static ot_status copy_and_start(ot_shards_job *job)
{
    OT_TRY(copy_own_elements(job));
    return start_thread(job, JOB_WRITING)
               ? OT_OK
               : ot__error(OT_ERR_NO_MEMORY, "no thread for writing a checkpoint can be made");
}

ot_status ot_shards_job_start(ot_shards_job *job, ot_comm *comm, const char *path,
                              const ot_shards_item *items, int n_items,
                              const ot_shards_save_options *options)
{
    ot_status st;

    OT_TRY(OT_GIVEN(job));
    if (job->phase != JOB_IDLE)
        OT_TRY(finish_job(job));
    join_thread(job);
    ot__held_files_drop(&job->removed);
    job->saving = (ot__saving){.staging.fd = -1};
    st = ot__saving_look(&job->saving, comm, path, items, n_items, options);
    OT_THEN(st, ot__saving_open(&job->saving));
    OT_THEN(st, ot__saving_plan(&job->saving));
    OT_THEN(st, ot__team_agree(&job->saving.team, copy_and_start(job), "save", NULL, 0));
    if (st != OT_OK) {
        join_thread(job);
        forget_save(job);
    }
    return st;
}

// Pages that are written to once are there from then on.
static ot_status take_memory(ot_shards_job *job, const ot__save_files *files)
{
    const size_t had = job->copy_bytes;
    size_t buffer_at;

    OT_TRY(make_room_for_copies(job, files, &buffer_at));
    if (job->copy_bytes > had)
        memset(job->copy, 0, job->copy_bytes);
    return OT_OK;
}

ot_status ot_shards_job_prepare(ot_shards_job *job, ot_comm *comm, const ot_shards_item *items,
                                int n_items)
{
    ot__saving s = {.staging.fd = -1};
    ot_status st;

    OT_TRY(OT_GIVEN(job));
    if (job->phase != JOB_IDLE)
        OT_TRY(finish_job(job));
    join_thread(job);
    st = ot__saving_look(&s, comm, ".", items, n_items, NULL);
    OT_THEN(st, ot__saving_plan(&s));
    OT_THEN(st, ot__team_agree(&s.team, take_memory(job, &s.files), "save", NULL, 0));
    ot__saving_deinit(&s);
    return st;
}

ot_status ot_shards_job_poll(ot_shards_job *job, int *done)
{
    ot_agreement a = OT_AGREEMENT_INIT;
    const ot__team *team;
    ot_status st;

    OT_TRY(OT_GIVEN(job));
    OT_TRY(OT_GIVEN(done));
    *done = job->phase == JOB_IDLE;
    if (*done)
        return OT_OK;
    team = &job->saving.team;
    a.call = "save";
    a.all = atomic_load(&job->is_done);
    if (team->comm != NULL)
        OT_TRY(ot_comm_agree(team->comm, &a));
    if (a.all == 0)
        return OT_OK;
    st = job->phase == JOB_WRITING ? begin_publishing(job, true) : end_job_save(job);
    *done = job->phase == JOB_IDLE;
    return st;
}

ot_status ot_shards_job_wait(ot_shards_job *job)
{
    ot_status st = OT_OK;

    OT_TRY(OT_GIVEN(job));
    if (job->phase != JOB_IDLE)
        st = finish_job(job);
    join_thread(job);
    ot__held_files_drop(&job->removed);
    return st;
}

void ot_shards_job_destroy(ot_shards_job *job)
{
    if (!OT_ENDS(job))
        return;
    join_thread(job);
    forget_save(job);
    ot__held_files_drop(&job->removed);
    ot__free(job->copy);
    ot__handle_leave(job);
    ot__free(job);
}
