// SPDX-License-Identifier: Apache-2.0
// What a training run shows: a bar on a terminal, plain lines in a pipe, a curve at the end.
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "onnxtrain/train.h"

typedef struct curve_point {
    double training, validation; // loss; validation NaN: none
} curve_point;

typedef struct progress {
    ot_task task;
    bool is_quiet, is_json, is_terminal;
    FILE *out;    // where lines go: standard output, or standard error when the model goes there
    char **notes; // of which the log gets a copy
    int n_notes;
    bool has_lost_log; // it could not be written to the end
    char *header;      // shown with the first step; NULL: nothing
    double last_drawn;
    int64_t first_epoch; // of the curve, from 0
    curve_point *points;
    int n_points;
    int64_t saved_step; // of the last checkpoint; -1: none
    char saved_to[4096];
} progress;

// SIGINT, SIGTERM, SIGHUP and SIGPIPE, as far as they are not ignored already, end the run after
// its step; a second SIGINT or SIGTERM ends the process at once. In a job, whose launcher passes
// signals on, they may come more than once, and SIGUSR1 ends the run, too.
void progress_catch_signals(bool is_in_job);
// Behind the run: whose reader has gone ends by SIGPIPE, as other programs do.
void progress_end_signals(void);
bool progress_is_unread(void); // SIGPIPE has come

bool progress_has_terminal(void);                         // where a bar can be drawn over
bool progress_note(progress *p, const char *text);        // a line before it begins
int progress_event(void *context, const ot_event *event); // an ot_train_callback
void progress_clear(const progress *p);                   // the bar, before another line
void progress_curve(const progress *p);                   // loss over epochs, as text
void progress_deinit(progress *p);
// "loss 0.0412  accuracy 98.75 %"
void print_metrics(FILE *out, ot_task task, const ot_metrics *metrics);
// {"rows":360,"loss":0.0412,"accuracy":0.9875}; what is no number is null
json_t *metrics_json(ot_task task, const ot_metrics *metrics);

#endif
