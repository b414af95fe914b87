// SPDX-License-Identifier: Apache-2.0
// Runs of the training loop over several ranks, which are threads.
#ifndef TESTS_UNIT_TRAIN_LOOP_RANKS_FIXTURE_H
#define TESTS_UNIT_TRAIN_LOOP_RANKS_FIXTURE_H

#include <math.h>

#include "base/file_calls.h"
#include "dist/whole.h"
#include "onnxtrain/resume.h"
#include "session/ranks.h"
#include "slices_fixture.h"
#include "unit/base/temporary_folder.h"
#include "unit/dist/ranks.h"

enum { EVENTS_MAX = 64, VALUES_MAX = 512, MESSAGE_MAX = 400 };

// What becomes of a run.
typedef struct outcome {
    ot_status status;
    char message[MESSAGE_MAX];
    int64_t n_steps;
    double values[VALUES_MAX]; // of all parameters
    int n_values;
    double losses[EVENTS_MAX]; // of epochs, in training and validation
    int n_losses, n_events, n_lost_saves;
    int64_t n_file_calls;
} outcome;

// A run on all ranks; `bad_rank` does something of its own.
typedef struct plan {
    const char *text, *folder;
    int64_t slices, accumulation, epochs, patience;
    int bad_rank;                   // -1: none
    int stop_after;                 // steps, on the bad rank
    double bad_target;              // of a row there,
    int bad_row;                    // 0: of row 1
    int64_t bad_epochs, bad_slices; // options there; 0: as the others
    int64_t fail_at;                // allocation of the run that fails there; 0: none does
    int64_t full_at;                // file call that finds no room there, and all after it; 0: none
    int64_t broken_at;              // file call that fails there; 0: none
    bool has_other_row, keeps_best, resumes;
    int zero;
    bool syncs_norms;
    int64_t batch_size, bad_batch_size; // 0: BATCH; there: as the others
    double rate;                        // 0: that of the fixture
    ot_checkpoint_format format;
    bool saves_async, saves_epochs; // saves_epochs: not each update
    outcome outcomes[RANKS_MAX];
} plan;

typedef struct listener {
    const plan *plan;
    outcome *out;
    int rank, n_steps;
} listener;

static inline int on_event(void *context, const ot_event *event)
{
    listener *l = context;
    outcome *out = l->out;

    out->n_events++;
    if (event->kind == OT_EVENT_EPOCH && out->n_losses + 2 <= EVENTS_MAX) {
        out->losses[out->n_losses++] = event->training.loss;
        out->losses[out->n_losses++] = event->validation.loss;
    }
    out->n_lost_saves += event->kind == OT_EVENT_SAVE_FAILED;
    l->n_steps += event->kind == OT_EVENT_STEP;
    return l->rank == l->plan->bad_rank && event->kind == OT_EVENT_STEP &&
           l->n_steps == l->plan->stop_after;
}

static inline void take_values(const world *w, outcome *out)
{
    out->n_values = 0;
    for (int i = 0; i < w->checkpoint->n_parameters; i++) {
        ot__parameter *p = w->checkpoint->parameters[i];

        ot__ckpt_unpack(w->checkpoint, p);
        for (int64_t k = 0; k < ot_tensor_count(p->value) && out->n_values < VALUES_MAX; k++)
            out->values[out->n_values++] = ((const double *)p->value->data)[k];
    }
    out->n_steps = ot_session_step_count(w->session);
}

static inline bool is_saved_as_file(const plan *p)
{
    char path[PATH_LENGTH_MAX + 16];

    snprintf(path, sizeof path, "%s/checkpoint", p->folder);
    return ot__path_exists(path);
}

static inline ot_status remake_session(world *w, const ot_session_options *options)
{
    ot_session_destroy(w->session);
    w->session = NULL;
    w->checkpoint = w->saved;
    return ot_session_create(
        ot_artifacts_training_model(w->artifacts), ot_artifacts_eval_model(w->artifacts),
        ot_artifacts_optimizer_model(w->artifacts), w->saved, options, &w->session);
}

static inline ot_status load_saved(world *w, const plan *p, const ot_session_options *options)
{
    ot_resume *resume;
    ot_status st;

    OT_TRY(ot_resume_create(options->parallel->comm, p->folder, &resume));
    w->saved = ot_resume_take_checkpoint(resume);
    st = w->saved != NULL ? remake_session(w, options) : OT_OK;
    OT_THEN(st, ot_resume_load(resume, w->session));
    if (st == OT_OK)
        assert_non_null(ot_resume_path(resume));
    ot_resume_destroy(resume);
    return st;
}

static inline ot_status run_on(const plan *p, ot_comm *comm, int rank, outcome *out)
{
    const bool is_bad = rank == p->bad_rank;
    listener l = {.plan = p, .out = out, .rank = rank};
    ot_session_options session = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_status st;
    world w;

    parallel.comm = comm;
    parallel.bucket_bytes = 200; // several buckets
    parallel.zero = p->zero;
    parallel.sync_batch_norm = p->syncs_norms;
    session.parallel = &parallel;
    session.n_threads = 1;
    options.slices = is_bad && p->bad_slices > 0 ? p->bad_slices : p->slices;
    options.epochs = is_bad && p->bad_epochs > 0 ? p->bad_epochs : p->epochs;
    options.patience = p->patience;
    options.keep_best = p->keeps_best;
    options.callback = on_event;
    options.callback_context = &l;
    options.checkpoint_dir = p->folder;
    options.save_every = p->folder != NULL && !p->saves_epochs;
    options.resume = p->resumes;
    options.checkpoint_format = p->format;
    options.save_async = p->saves_async;
    options.overwrite = 1;
    st = open_world_over(&w, p->text, &session);
    if (p->resumes)
        OT_THEN(st, load_saved(&w, p, &session));
    if (p->rate > 0)
        OT_THEN(st, ot_session_set_learning_rate(w.session, p->rate));
    if (p->batch_size > 0)
        w.batch_size = p->batch_size;
    if (is_bad && p->bad_batch_size > 0)
        w.batch_size = p->bad_batch_size;
    if (is_bad && !(fabs(p->bad_target) <= 0)) // nan, too
        w.t[p->bad_row > 0 ? p->bad_row : 1] = p->bad_target;
    if (is_bad && p->has_other_row)
        w.t[ROWS - 1] += 1;
    ot__file_fault_after(!is_bad          ? -1
                         : p->full_at > 0 ? p->full_at - 1
                                          : p->broken_at - 1,
                         p->full_at > 0 ? OT_FILE_FULL : OT_FILE_FAIL);
    OT_THEN(st, train_with(&w, p->accumulation, true, &options, is_bad ? p->fail_at : 0, NULL));
    out->n_file_calls = ot__file_fault_after(-1, OT_FILE_FULL);
    out->status = st;
    snprintf(out->message, sizeof out->message, "%s", st != OT_OK ? ot_error_message() : "");
    if (st == OT_OK) // as on all ranks
        st = make_values_whole(w.session);
    if (w.session != NULL && (st == OT_OK || p->zero < 3)) // else ranks may have parts
        take_values(&w, out);
    close_world(&w);
    return st;
}

static inline void run_rank_of_plan(ot_comm *comm, void *context)
{
    plan *p = context;
    const int rank = ot_comm_rank(comm);

    (void)run_on(p, comm, rank, &p->outcomes[rank]);
}

static inline void run_plan(plan *p, int n_ranks)
{
    memset(p->outcomes, 0, sizeof p->outcomes);
    run_ranks(n_ranks, run_rank_of_plan, p);
    for (int i = 1; i < n_ranks; i++) { // all ranks end alike
        if (p->outcomes[i].status != p->outcomes[0].status)
            fail_msg("rank %d: %s; rank 0: %s; allocation %d", i, p->outcomes[i].message,
                     p->outcomes[0].message, (int)p->fail_at);
        assert_string_equal(p->outcomes[i].message, p->outcomes[0].message);
        assert_int_equal(p->outcomes[i].n_steps, p->outcomes[0].n_steps);
        assert_memory_equal(p->outcomes[i].values, p->outcomes[0].values,
                            sizeof p->outcomes[0].values);
        assert_memory_equal(p->outcomes[i].losses, p->outcomes[0].losses,
                            sizeof p->outcomes[0].losses);
    }
}

static inline void assert_runs_well(const plan *p)
{
    if (p->outcomes[0].status != OT_OK)
        fail_msg("%s: %s", ot_status_name(p->outcomes[0].status), p->outcomes[0].message);
}

static inline void assert_same_outcome(const outcome *a, const outcome *b)
{
    assert_int_equal(a->n_steps, b->n_steps);
    assert_int_equal(a->n_values, b->n_values);
    assert_memory_equal(a->values, b->values, sizeof a->values);
    assert_int_equal(a->n_losses, b->n_losses);
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
}

static inline void assert_fails(plan *p, int n_ranks, ot_status status, const char *message)
{
    run_plan(p, n_ranks);
    assert_int_equal(p->outcomes[0].status, status);
    if (strstr(p->outcomes[0].message, message) == NULL)
        fail_msg("'%s', expected '%s'", p->outcomes[0].message, message);
}

// Allocations fail on either of two ranks.
static inline void lack_memory(plan *p)
{
    ot_status st = OT_ERR_NO_MEMORY;

    for (int64_t n = 1; st != OT_OK; n += 1 + n / 8) {
        p->bad_rank = (int)(n % 2);
        p->fail_at = n;
        run_plan(p, 2);
        st = p->outcomes[0].status;
        if (st != OT_OK)
            assert_int_equal(st, OT_ERR_NO_MEMORY);
        assert_true(n < 100000);
    }
}

#endif
