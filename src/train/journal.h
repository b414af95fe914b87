// SPDX-License-Identifier: Apache-2.0
// What a run writes of itself while it runs: JSON, an object a line, and event files of
// TensorBoard.
#ifndef OT_TRAIN_JOURNAL_H
#define OT_TRAIN_JOURNAL_H

#include "train/train.h"

enum { OT_JOURNAL_JSON, OT_JOURNAL_EVENTS, OT_N_JOURNALS };

typedef struct ot__journal {
    ot__file_writer *files[OT_N_JOURNALS]; // NULL: not wanted, or lost
    char *paths[OT_N_JOURNALS];
    ot_task task; // whose metrics there are
    // of the present epoch, at its last step
    int64_t epoch, rows;
    double loss; // sum over the rows
} ot__journal;

// For a run that stands at `at`, after `step` optimizer steps. Of what was zeroed, close is fine.
ot_status ot__journal_open(ot__journal *journal, const ot_train_options *options,
                           const ot__position *at, int64_t step);
void ot__journal_close(ot__journal *journal);
// Into every file. One that cannot be written is given up, and `lost` is called, to which
// ot_error_message() says why.
typedef void (*ot__journal_lost)(void *context, const char *path);
void ot__journal_event(ot__journal *journal, const ot_event *event, ot__journal_lost lost,
                       void *context);

// ---- the formats: bytes behind what is in `out` ----

// journal_json.c
void ot__journal_json_options(const char *json, ot__buf *out);
void ot__journal_json_note(const char *text, ot__buf *out);
void ot__journal_json(const ot__journal *journal, const ot_event *event, ot__buf *out);

// journal_events.c
char *ot__journal_events_path(const char *folder); // of a file that is not there; caller frees
// A reader forgets what other files of the folder say of steps after `step`.
void ot__journal_events_begin(int64_t step, ot__buf *out);
void ot__journal_events(const ot__journal *journal, const ot_event *event, ot__buf *out);

#endif
