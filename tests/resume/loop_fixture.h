// SPDX-License-Identifier: Apache-2.0
// A small network, its data, and runs of the training loop over them: with shuffling, dropout,
// batch statistics, a schedule, clipping, accumulated micro-batches and a short last batch.
#ifndef TESTS_RESUME_LOOP_FIXTURE_H
#define TESTS_RESUME_LOOP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/base/temporary_folder.h"
#include "base/base.h"
#include "onnxtrain/onnxtrain.h"

static const char model_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "forward (float[N,6] x) => (float[N,3] y)\n"
    "<float[8] scale = {1, 1, 1, 1, 1, 1, 1, 1}, float[8] bias = {0, 0, 0, 0, 0, 0, 0, 0},\n"
    " float[8] mean = {0, 0, 0, 0, 0, 0, 0, 0}, float[8] var = {1, 1, 1, 1, 1, 1, 1, 1},\n"
    " float ratio = {0.3}, bool on = {1}>\n"
    "{\n"
    "  w1 = RandomNormal<shape = [6, 8]>()\n"
    "  w2 = RandomNormal<shape = [8, 3], scale = 0.4>()\n"
    "  a = MatMul(x, w1)\n"
    "  b = BatchNormalization(a, scale, bias, mean, var)\n"
    "  c = Relu(b)\n"
    "  d = Dropout(c, ratio, on)\n"
    "  y = MatMul(d, w2)\n"
    "}\n";

// 23 rows in batches of 4, two to a step: three steps an epoch, the last of one short and one full
// batch.
enum { N_FEATURES = 6, N_ROWS = 23, BATCH = 4, ACCUMULATION = 2, STEPS_PER_EPOCH = 3, EPOCHS = 2 };
enum { PATIENCE_EPOCHS = 30, PATIENCE = 2 };

typedef struct run_plan {
    int64_t epochs, patience, save_every, max_steps;
    double learning_rate;
    double new_rate; // of a resumed run; 0: that of the checkpoint
    bool is_fresh;   // does not resume
    bool overwrite, keep_best, has_no_validation, has_no_folder;
    int64_t accumulation; // 0: ACCUMULATION
    int64_t slices;       // of a run that does not resume
    int n_threads;        // 0: 2
    int64_t stop_after;   // events; 0: never
    int64_t fail_at;      // allocation of the loop that fails, and all after it; 0: none does
    ot_event_kind stop_at;
} run_plan;

typedef struct watch {
    const run_plan *plan;
    int64_t n_events;
    bool stopped_early; // by patience
    int64_t n_steps;
    ot_event epoch, best; // the last of the kind
    ot_metrics last;
} watch;

static inline int watch_event(void *context, const ot_event *event)
{
    watch *w = context;

    w->stopped_early = w->stopped_early || event->kind == OT_EVENT_EARLY_STOP;
    w->n_steps += event->kind == OT_EVENT_STEP;
    if (event->kind == OT_EVENT_EPOCH)
        w->epoch = *event;
    if (event->kind == OT_EVENT_EPOCH && event->is_best)
        w->best = *event;
    return event->kind == w->plan->stop_at && ++w->n_events == w->plan->stop_after;
}

static inline void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

// ---- data ----

static inline void write_rows(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int r = 0; r < N_ROWS; r++) {
        for (int c = 0; c < N_FEATURES; c++)
            fprintf(file, "%d.%d,", (r * 7 + c * 3) % 5 - 2, (r * 11 + c * 5) % 9);
        fprintf(file, "%d\n", (r * r + r / 3) % 3);
    }
    fclose(file);
}

static inline ot_batches *make_batches(const ot_dataset *dataset, int shuffle)
{
    const ot_binding bindings[] = {
        {"x", OT_F32, {1, {N_FEATURES}}, "0:5", 1.0, NULL, NULL, 1, 0, 0},
        {"labels", OT_I64, {0, {0}}, "6", 1.0, NULL, NULL, 1, 1, 0},
    };
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_batches *batches;

    options.batch_size = BATCH;
    options.shuffle = shuffle;
    options.seed = 5;
    need(ot_batches_create(dataset, bindings, 2, &options, &batches));
    return batches;
}

// ---- runs ----

static inline ot_artifacts *make_artifacts(void)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    options.losses = &loss;
    options.n_losses = 1;
    options.seed = 3;
    options.optimizer = &optimizer;
    optimizer.hyper = &(const ot_hyper){"weight_decay", 0.01};
    optimizer.n_hyper = 1;
    optimizer.max_norm = 0.8;
    need(ot_model_load_buffer(model_text, sizeof model_text - 1, NULL, &model));
    need(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static inline void configure(ot_session *session, double learning_rate)
{
    ot_schedule schedule = OT_SCHEDULE_INIT;

    schedule.kind = OT_SCHEDULE_COSINE;
    schedule.initial_lr = learning_rate;
    schedule.warmup_steps = 2;
    schedule.total_steps = 20;
    ot_session_set_seed(session, 77);
    need(ot_session_set_schedule(session, &schedule));
}

// One process's part of a run: from the checkpoint in `folder`, or from the start when there is
// none.
static inline ot_status run(void **state, const char *folder, const run_plan *plan, watch *seen)
{
    const char *paths[] = {in_folder(state, "rows.csv")};
    char saved[PATH_LENGTH_MAX];
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_session_options threads = OT_SESSION_OPTIONS_INIT;
    ot_artifacts *artifacts = make_artifacts();
    ot_checkpoint *loaded = NULL;
    ot_session *session;
    ot_trainer_options how = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainer;
    ot_dataset *dataset;
    ot_batches *training, *validation;
    ot_status st;

    *seen = (watch){.plan = plan};
    snprintf(saved, sizeof saved, "%s/checkpoint", folder);
    threads.n_threads = plan->n_threads > 0 ? plan->n_threads : 2;
    need(ot_dataset_open(paths, 1, NULL, &dataset));
    training = make_batches(dataset, 1);
    validation = make_batches(dataset, 0);
    options.resume = !plan->is_fresh && ot__path_exists(saved);
    if (options.resume)
        need(ot_checkpoint_load(saved, &loaded));
    need(ot_session_create(
        ot_artifacts_training_model(artifacts), ot_artifacts_eval_model(artifacts),
        ot_artifacts_optimizer_model(artifacts),
        loaded ? loaded : ot_artifacts_checkpoint(artifacts), &threads, &session));
    if (!options.resume)
        configure(session, plan->learning_rate);
    else if (plan->new_rate > 0)
        configure(session, plan->new_rate);
    options.epochs = plan->epochs;
    options.max_steps = plan->max_steps;
    how.gradient_accumulation_steps = plan->accumulation > 0 ? plan->accumulation : ACCUMULATION;
    need(ot_trainer_create_from_session(session, NULL, &how, &trainer));
    options.checkpoint_dir = plan->has_no_folder ? NULL : folder;
    options.overwrite = plan->overwrite;
    options.save_every = plan->save_every;
    options.slices = options.resume ? 0 : plan->slices;
    options.patience = plan->patience;
    options.keep_best = plan->keep_best || plan->patience > 0;
    options.callback = watch_event;
    options.callback_context = seen;
    ot__alloc_fail_after(plan->fail_at - 1);
    st = ot_train_run(trainer, training, plan->has_no_validation ? NULL : validation, &options,
                      &seen->last);
    ot__alloc_fail_after(-1);
    if (st == OT_OK &&
        !plan->has_no_folder) { // also what stands in the session at the end: the best epoch's
        snprintf(saved, sizeof saved, "%s/end", folder);
        need(ot_session_save(session, saved));
    }
    ot_batches_destroy(training);
    ot_batches_destroy(validation);
    ot_dataset_destroy(dataset);
    ot_trainer_destroy(trainer);
    ot_session_destroy(session);
    ot_checkpoint_destroy(loaded);
    ot_artifacts_destroy(artifacts);
    return st;
}

typedef char file_path[PATH_LENGTH_MAX + 32];

static inline void path_in(file_path to, const char *folder, const char *name)
{
    snprintf(to, sizeof(file_path), "%s/%s", folder, name);
}

static inline void assert_same_file(const char *a_folder, const char *b_folder, const char *name)
{
    file_path a_path, b_path;
    ot__file_map a, b;

    path_in(a_path, a_folder, name);
    path_in(b_path, b_folder, name);
    need(ot__file_map_open(&a, a_path));
    need(ot__file_map_open(&b, b_path));
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    ot__file_map_close(&a);
    ot__file_map_close(&b);
}

static inline void copy_path(char to[PATH_LENGTH_MAX], const char *path)
{
    snprintf(to, PATH_LENGTH_MAX, "%s", path);
}

#endif
