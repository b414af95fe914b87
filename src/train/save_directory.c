// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run as directories: each is the only one when it is there. With save_async one
// is written while the training goes on, and the ranks come to its end together: in later updates,
// before the next save, and at the end of the run.
#include <stdio.h>

#include "onnxtrain/state_dict.h"
#include "train/loop.h"

// ---- which format ----

ot_status ot__directory_choose(ot__loop *l)
{
    const ot_checkpoint_format format = l->options->checkpoint_format;

    if (format == OT_CHECKPOINT_FORMAT_FILE && l->options->save_async)
        return ot__error(OT_ERR_INVALID,
                         "save_async: the checkpoint is a file, expected directories");
    if (format == OT_CHECKPOINT_FORMAT_FILE && ot__session_is_cut(l->session))
        return ot__error(OT_ERR_INVALID,
                         "the checkpoint is a file, expected directories: each rank has a part of "
                         "the state (zero)");
    l->saves_directories = format == OT_CHECKPOINT_FORMAT_DIRECTORY || l->options->save_async ||
                           ot__session_is_cut(l->session);
    return l->options->save_async ? ot_shards_job_create(&l->job) : OT_OK;
}

// ---- what another run, or this one before, has saved in the other format ----

static void remove_other_directory(const ot__loop *l)
{
    ot_shards_reader *reader = NULL;

    (void)ot_shards_open(l->options->checkpoint_dir, &reader);
    ot__file_remove(l->latest_path); // from here on the directory does not count
    if (reader != NULL)
        (void)ot__directory_remove(ot_shards_reader_path(reader), NULL);
    ot_shards_reader_destroy(reader);
}

void ot__directory_drop_other(ot__loop *l)
{
    if (ot__loop_rank(l) > 0)
        return;
    if (!l->saves_directories && ot__path_exists(l->latest_path))
        remove_other_directory(l);
    if (l->saves_directories && ot__path_exists(l->checkpoint_path))
        ot__save_remove(l->checkpoint_path);
}

// ---- a save ----

static ot_status start_save(ot__loop *l, const ot_shards_save_options *options)
{
    if (l->job == NULL)
        return ot_session_save_shards(l->session, l->directory_path, options);
    OT_TRY(ot_session_save_shards_async(l->session, l->job, l->directory_path, options));
    l->is_saving = true;
    return OT_OK;
}

ot_status ot__directory_write(ot__loop *l)
{
    const int64_t step = ot_session_step_count(l->session);
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    char name[32], *path;

    snprintf(name, sizeof name, "step-%" PRId64, step);
    path = ot__path_join(l->options->checkpoint_dir, name);
    options.step = step;
    options.replaces = options.sets_latest = 1;
    options.n_kept = 1;
    ot__free(l->directory_path);
    l->directory_path = path;
    OT_TRY(ot__loop_agree(l, ot__made(path), "saving"));
    return start_save(l, &options);
}

// ---- its end ----

static ot_status end_save(ot__loop *l, ot_status st)
{
    l->is_saving = false;
    l->has_failed = st != OT_OK;
    if (st == OT_OK)
        ot__save_published(l, &l->saving_event);
    return st;
}

// Memory of copies is taken when all of the state is there: after the first update, which takes its
// own.
static ot_status prepare_job(ot__loop *l)
{
    const bool is_due = l->job != NULL && l->has_updated && !l->has_memory;

    l->has_updated = true;
    l->has_memory = l->has_memory || is_due;
    return is_due ? ot__session_prepare_job(l->session, l->job) : OT_OK;
}

ot_status ot__directory_poll(ot__loop *l)
{
    ot_status st;
    int done;

    if (!l->is_saving)
        return prepare_job(l);
    st = ot_shards_job_poll(l->job, &done);
    return st != OT_OK || done ? ot__save_endure(l, &l->saving_event, end_save(l, st)) : OT_OK;
}

ot_status ot__directory_finish(ot__loop *l)
{
    return l->is_saving ? end_save(l, ot_shards_job_wait(l->job)) : OT_OK;
}
