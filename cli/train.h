// SPDX-License-Identifier: Apache-2.0
// What the files of the command `train` share.
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "data_options.h"
#include "job.h"
#include "model_options.h"
#include "onnxtrain/resume.h"
#include "progress.h"
#include "train_output.h"

typedef struct train_values {
    model_values model;
    data_values data;
    int64_t epochs, max_steps, accumulate, slices, warmup, total_steps, step_size;
    double lr, gamma, power, end_factor;
    int schedule, precision;
    int64_t threads, memory_max;
    int comm;
    double comm_timeout;
    int64_t zero;
    bool sync_batch_norm;
    text_list recompute;
    bool reproducible;
    const char *checkpoint_dir;
    int checkpoint_format;
    int64_t save_every, early_stop;
    bool save_async, resume, overwrite, keep_best, dry_run;
    const char *out, *log, *tensorboard;
    const char *config;
    text_list set;
    bool print_config, quiet, json;
} train_values;

extern const option_spec train_option_table[]; // train_options.c

enum { TRAIN_MAX_INPUTS = 256 };
// Files that are read; returns their number.
int train_inputs(const train_values *v, const char *model, const char *inputs[TRAIN_MAX_INPUTS]);
// What values and configuration show to be wrong: EXIT_SUCCESS, or EXIT_USAGE after a message.
int train_values_check(const train_values *v, const char *model);

typedef struct train_run {
    const train_values *values;
    job job;
    const char *path;
    bool from_folder;
    ot_model *forward;
    model_setup model;
    ot_artifacts *artifacts;
    ot_resume *resume;      // what there is to go on from
    ot_checkpoint *resumed; // of that, replaces the artifacts' checkpoint
    bool is_resumed;        // of that, or of a checkpoint directory
    char moments_of[80];    // operator whose moments it had; "": nobody's
    ot_session *session;
    ot_trainer *trainer; // over the session
    data_setup data;
    ot_data_options data_options; // of the training data
    ot_batches_options batches_options;
    progress progress;
    train_output output;
    int64_t start_step;
    ot_train_options options;
    ot_schedule schedule;               // of the options
    ot_trainer_options trainer_options; // of the configuration, as what follows
    ot_optimizer_options optimizer;
    char *config; // its text
} train_run;

// cmd_train.c: the stage of ZeRO, of the option or of the configuration.
int train_zero(const train_run *r);

// train_notes.c: EXIT_SUCCESS, or EXIT_FAILED after a message.
int train_check_honoured(const train_run *r);
int train_note_all(train_run *r);
// train_resume.c, of all processes: what the run goes on from, if there is anything, before there
// is a session, and into it.
int train_take_resumed(train_run *r);
int train_load_resumed(train_run *r);

// train_end.c: what is said, and what is kept.
void train_report(const train_run *r, const ot_metrics *metrics);
bool train_writes(const train_run *r); // this process has a part in writing the trained model
// After Ctrl-C or an error, of which the library's message tells; returns the exit code.
int train_rescue(const train_run *r, ot_status status, const ot_metrics *metrics);

#endif
