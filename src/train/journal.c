// SPDX-License-Identifier: Apache-2.0
#include "train/journal.h"

typedef void (*journal_format)(const ot__journal *journal, const ot_event *event, ot__buf *out);
static const journal_format formats[OT_N_JOURNALS] = {ot__journal_json, ot__journal_events};

// Empties the buffer.
static ot_status put(ot__journal *j, int which, ot__buf *bytes)
{
    ot_status st = ot__buf_status(bytes);

    if (bytes->length > 0)
        OT_THEN(st, ot__file_writer_write(j->files[which], bytes->data, bytes->length));
    ot__buf_deinit(bytes);
    if (st == OT_OK)
        return OT_OK;
    ot__file_writer_abort(j->files[which]);
    j->files[which] = NULL;
    return st;
}

static ot_status open_json(ot__journal *j, const ot_train_options *options)
{
    ot__buf first = {0};

    j->paths[OT_JOURNAL_JSON] = ot__strdup(options->log);
    OT_TRY(ot__made(j->paths[OT_JOURNAL_JSON]));
    OT_TRY(ot__file_append_open(&j->files[OT_JOURNAL_JSON], options->log, options->resume));
    if (options->config)
        ot__journal_json_options(options->config, &first);
    for (int i = 0; i < options->n_notes; i++)
        ot__journal_json_note(options->notes[i], &first);
    return put(j, OT_JOURNAL_JSON, &first);
}

static ot_status open_events(ot__journal *j, const char *folder, int64_t step)
{
    ot__buf beginning = {0};

    OT_TRY(ot__path_make_folder(folder));
    j->paths[OT_JOURNAL_EVENTS] = ot__journal_events_path(folder);
    OT_TRY(ot__made(j->paths[OT_JOURNAL_EVENTS]));
    OT_TRY(ot__file_append_open(&j->files[OT_JOURNAL_EVENTS], j->paths[OT_JOURNAL_EVENTS], false));
    ot__journal_events_begin(step, &beginning);
    return put(j, OT_JOURNAL_EVENTS, &beginning);
}

ot_status ot__journal_open(ot__journal *j, const ot_train_options *options, const ot__position *at,
                           int64_t step)
{
    *j = (ot__journal){
        .task = options->metric_output < 0 ? OT_TASK_NONE : options->task,
        .epoch = at->epoch,
        .rows = at->sums.rows,
        .loss = at->sums.loss,
    };
    if (options->log)
        OT_TRY(open_json(j, options));
    return options->tensorboard_dir ? open_events(j, options->tensorboard_dir, step) : OT_OK;
}

void ot__journal_close(ot__journal *j)
{
    for (int i = 0; i < OT_N_JOURNALS; i++) {
        ot__file_writer_abort(j->files[i]);
        ot__free(j->paths[i]);
    }
}

void ot__journal_event(ot__journal *j, const ot_event *event, ot__journal_lost lost, void *context)
{
    for (int i = 0; i < OT_N_JOURNALS; i++) {
        ot__buf bytes = {0};

        if (!j->files[i])
            continue;
        formats[i](j, event, &bytes);
        if (put(j, i, &bytes) != OT_OK)
            lost(context, j->paths[i]);
    }
    if (event->kind == OT_EVENT_STEP) {
        j->epoch = event->epoch;
        j->rows = event->training.rows;
        j->loss = event->training.loss * (double)j->rows;
    }
}
