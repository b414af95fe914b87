// SPDX-License-Identifier: Apache-2.0
// A training run that is stopped, saved, loaded and resumed ends with the bytes of one that was
// not: with shuffling, dropout, batch statistics, a schedule, clipping, accumulated micro-batches,
// a short last batch, early stop and the best epoch kept.
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
    int64_t epochs, patience, save_every;
    double learning_rate;
    int64_t stop_after; // events; 0: never
    ot_event_kind stop_at;
} run_plan;

typedef struct watch {
    const run_plan *plan;
    int64_t n_events;
    bool stopped_early; // by patience
} watch;

static int watch_event(void *context, const ot_event *event)
{
    watch *w = context;

    w->stopped_early = w->stopped_early || event->kind == OT_EVENT_EARLY_STOP;
    return event->kind == w->plan->stop_at && ++w->n_events == w->plan->stop_after;
}

static void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

// ---- data ----

static void write_rows(const char *path)
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

static ot_batches *make_batches(const ot_dataset *dataset, int shuffle)
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

static ot_artifacts *make_artifacts(void)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    options.losses = &loss;
    options.n_losses = 1;
    options.seed = 3;
    options.optimizer.weight_decay = 0.01;
    options.optimizer.max_norm = 0.8;
    need(ot_model_load_buffer(model_text, sizeof model_text - 1, NULL, &model));
    need(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static void configure(ot_session *session, double learning_rate)
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
static ot_status run(void **state, const char *folder, const run_plan *plan, watch *seen)
{
    const char *paths[] = {in_folder(state, "rows.csv")};
    char saved[PATH_LENGTH_MAX];
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_session_options threads = OT_SESSION_OPTIONS_INIT;
    ot_artifacts *artifacts = make_artifacts();
    ot_checkpoint *loaded = NULL;
    ot_session *session;
    ot_dataset *dataset;
    ot_batches *training, *validation;
    ot_status st;

    *seen = (watch){.plan = plan};
    snprintf(saved, sizeof saved, "%s/checkpoint", folder);
    threads.n_threads = 2;
    need(ot_dataset_open(paths, 1, NULL, &dataset));
    training = make_batches(dataset, 1);
    validation = make_batches(dataset, 0);
    options.resume = ot__path_exists(saved);
    if (options.resume)
        need(ot_checkpoint_load(saved, &loaded));
    need(ot_session_create(
        ot_artifacts_training_model(artifacts), ot_artifacts_eval_model(artifacts),
        ot_artifacts_optimizer_model(artifacts),
        loaded ? loaded : ot_artifacts_checkpoint(artifacts), &threads, &session));
    if (!options.resume)
        configure(session, plan->learning_rate);
    options.epochs = plan->epochs;
    options.accumulation = ACCUMULATION;
    options.checkpoint_folder = folder;
    options.save_every = plan->save_every;
    options.patience = plan->patience;
    options.keep_best = plan->patience > 0;
    options.callback = watch_event;
    options.callback_context = seen;
    st = ot_train_run(session, training, validation, &options, NULL);
    if (st == OT_OK) { // also what stands in the session at the end: the best epoch's
        snprintf(saved, sizeof saved, "%s/end", folder);
        need(ot_session_save(session, saved));
    }
    ot_batches_destroy(training);
    ot_batches_destroy(validation);
    ot_dataset_destroy(dataset);
    ot_session_destroy(session);
    ot_checkpoint_destroy(loaded);
    ot_artifacts_destroy(artifacts);
    return st;
}

static void assert_same_file(const char *a_folder, const char *b_folder, const char *name)
{
    char a_path[PATH_LENGTH_MAX], b_path[PATH_LENGTH_MAX];
    ot__file_map a, b;

    snprintf(a_path, sizeof a_path, "%s/%s", a_folder, name);
    snprintf(b_path, sizeof b_path, "%s/%s", b_folder, name);
    need(ot__file_map_open(&a, a_path));
    need(ot__file_map_open(&b, b_path));
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    ot__file_map_close(&a);
    ot__file_map_close(&b);
}

static void copy_path(char to[PATH_LENGTH_MAX], const char *path)
{
    snprintf(to, PATH_LENGTH_MAX, "%s", path);
}

// Stops once after every possible number of events, and compares the files that stay at the end.
static void stop_everywhere(void **state, run_plan plan, int64_t n_events)
{
    char whole[PATH_LENGTH_MAX], parts[PATH_LENGTH_MAX];
    watch seen;

    write_rows(in_folder(state, "rows.csv"));
    copy_path(whole, in_folder(state, "whole"));
    assert_int_equal(run(state, whole, &plan, &seen), OT_OK);
    assert_int_equal(seen.stopped_early, plan.patience > 0);
    for (int64_t n = 1; n <= n_events; n++) {
        char name[32];

        snprintf(name, sizeof name, "parts%d", (int)n);
        copy_path(parts, in_folder(state, name));
        plan.stop_after = n;
        assert_int_equal(run(state, parts, &plan, &seen), OT_ERR_INTERRUPTED);
        plan.stop_after = 0;
        assert_int_equal(run(state, parts, &plan, &seen), OT_OK);
        assert_same_file(whole, parts, "checkpoint");
        assert_same_file(whole, parts, "end");
        if (plan.patience > 0)
            assert_same_file(whole, parts, "best");
    }
}

static void a_run_stopped_after_any_step_and_resumed_ends_with_the_same_bytes(void **state)
{
    stop_everywhere(state,
                    (run_plan){.epochs = EPOCHS, .learning_rate = 0.05, .stop_at = OT_EVENT_STEP},
                    EPOCHS * STEPS_PER_EPOCH - 1);
}

static void a_run_stopped_after_an_epoch_and_resumed_ends_with_the_same_bytes(void **state)
{
    stop_everywhere(
        state, (run_plan){.epochs = EPOCHS + 1, .learning_rate = 0.05, .stop_at = OT_EVENT_EPOCH},
        EPOCHS);
}

// The rate makes the loss grow soon, so that the run ends by patience; the best epoch is known from
// its file.
static void early_stop_and_the_best_epoch_do_not_depend_on_interruptions(void **state)
{
    stop_everywhere(state,
                    (run_plan){.epochs = PATIENCE_EPOCHS,
                               .patience = PATIENCE,
                               .save_every = 2,
                               .learning_rate = 0.5,
                               .stop_at = OT_EVENT_STEP},
                    (PATIENCE + 1) * STEPS_PER_EPOCH - 1);
}

static void a_run_stopped_after_every_step_ends_with_the_same_bytes(void **state)
{
    run_plan plan = {.epochs = EPOCHS, .learning_rate = 0.05, .stop_at = OT_EVENT_STEP};
    char whole[PATH_LENGTH_MAX], parts[PATH_LENGTH_MAX];
    watch seen;
    ot_status st;
    int n = 0;

    write_rows(in_folder(state, "rows.csv"));
    copy_path(whole, in_folder(state, "whole"));
    copy_path(parts, in_folder(state, "parts"));
    assert_int_equal(run(state, whole, &plan, &seen), OT_OK);
    plan.stop_after = 1;
    do {
        st = run(state, parts, &plan, &seen);
        n++;
    } while (st == OT_ERR_INTERRUPTED && n <= EPOCHS * STEPS_PER_EPOCH);
    assert_int_equal(st, OT_OK);
    assert_true(n >= EPOCHS * STEPS_PER_EPOCH);
    assert_same_file(whole, parts, "checkpoint");
    assert_same_file(whole, parts, "end");
}

static void two_runs_do_not_save_into_one_folder(void **state)
{
    const run_plan plan = {.epochs = 1, .learning_rate = 0.05};
    char folder[PATH_LENGTH_MAX], path[PATH_LENGTH_MAX];
    ot__lock other;
    watch seen;

    write_rows(in_folder(state, "rows.csv"));
    copy_path(folder, in_folder(state, "saved"));
    copy_path(path, in_folder(state, "saved/.onnxtrain-lock"));
    need(ot__path_make_folder(folder));
    need(ot__lock_take(path, &other)); // as another run does
    assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_STATE);
    assert_non_null(strstr(ot_error_message(), "another run saves into this folder: "));
    assert_non_null(strstr(ot_error_message(), "saved/.onnxtrain-lock: locked by process "));
    ot__lock_leave(&other);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_false(ot__path_exists(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_run_stopped_after_any_step_and_resumed_ends_with_the_same_bytes),
        TEST_IN_FOLDER(a_run_stopped_after_an_epoch_and_resumed_ends_with_the_same_bytes),
        TEST_IN_FOLDER(early_stop_and_the_best_epoch_do_not_depend_on_interruptions),
        TEST_IN_FOLDER(a_run_stopped_after_every_step_ends_with_the_same_bytes),
        TEST_IN_FOLDER(two_runs_do_not_save_into_one_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
