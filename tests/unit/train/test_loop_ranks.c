// SPDX-License-Identifier: Apache-2.0
// Runs over several ranks, which are threads, against one process with as many slices: the same
// bits.
#include <math.h>

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
    int n_losses, n_events;
} outcome;

// A run on all ranks; `bad_rank` does something of its own.
typedef struct plan {
    const char *text, *folder;
    int64_t slices, accumulation, epochs, patience;
    int bad_rank;                   // -1: none
    int stop_after;                 // steps, on the bad rank
    double bad_target;              // of row 1 there
    int64_t bad_epochs, bad_slices; // options there; 0: as the others
    int64_t fail_at;                // allocation of the run that fails there; 0: none does
    bool has_other_row, keeps_best, resumes;
    int zero;
    bool syncs_norms;
    int64_t batch_size; // 0: BATCH
    ot_checkpoint_format format;
    bool saves_async;
    outcome outcomes[RANKS_MAX];
} plan;

typedef struct listener {
    const plan *plan;
    outcome *out;
    int rank, n_steps;
} listener;

static int on_event(void *context, const ot_event *event)
{
    listener *l = context;
    outcome *out = l->out;

    out->n_events++;
    if (event->kind == OT_EVENT_EPOCH && out->n_losses + 2 <= EVENTS_MAX) {
        out->losses[out->n_losses++] = event->training.loss;
        out->losses[out->n_losses++] = event->validation.loss;
    }
    l->n_steps += event->kind == OT_EVENT_STEP;
    return l->rank == l->plan->bad_rank && event->kind == OT_EVENT_STEP &&
           l->n_steps == l->plan->stop_after;
}

static void take_values(const world *w, outcome *out)
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

static bool is_saved_as_file(const plan *p)
{
    char path[PATH_LENGTH_MAX + 16];

    snprintf(path, sizeof path, "%s/checkpoint", p->folder);
    return ot__path_exists(path);
}

static ot_status load_saved(world *w, const plan *p, const ot_session_options *options)
{
    char path[PATH_LENGTH_MAX + 16];
    ot_checkpoint *saved;

    if (!is_saved_as_file(p))
        return ot_session_load_shards(w->session, p->folder);
    snprintf(path, sizeof path, "%s/checkpoint", p->folder);
    ot_session_destroy(w->session);
    w->session = NULL;
    OT_TRY(ot_checkpoint_load(path, &saved));
    w->checkpoint = w->saved = saved;
    return ot_session_create(
        ot_artifacts_training_model(w->artifacts), ot_artifacts_eval_model(w->artifacts),
        ot_artifacts_optimizer_model(w->artifacts), saved, options, &w->session);
}

static ot_status run_on(const plan *p, ot_comm *comm, int rank, outcome *out)
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
    options.save_every = p->folder != NULL;
    options.resume = p->resumes;
    options.checkpoint_format = p->format;
    options.save_async = p->saves_async;
    options.overwrite = 1;
    st = open_world_over(&w, p->text, &session);
    if (p->resumes)
        OT_THEN(st, load_saved(&w, p, &session));
    if (p->batch_size > 0)
        w.batch_size = p->batch_size;
    if (is_bad && !(fabs(p->bad_target) <= 0)) // nan, too
        w.t[1] = p->bad_target;
    if (is_bad && p->has_other_row)
        w.t[ROWS - 1] += 1;
    OT_THEN(st, train_with(&w, p->accumulation, true, &options, is_bad ? p->fail_at : 0, NULL));
    out->status = st;
    snprintf(out->message, sizeof out->message, "%s", st != OT_OK ? ot_error_message() : "");
    if (w.session != NULL)
        take_values(&w, out);
    close_world(&w);
    return st;
}

static void run_rank_of_plan(ot_comm *comm, void *context)
{
    plan *p = context;
    const int rank = ot_comm_rank(comm);

    (void)run_on(p, comm, rank, &p->outcomes[rank]);
}

static void run_plan(plan *p, int n_ranks)
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

static void assert_runs_well(const plan *p)
{
    if (p->outcomes[0].status != OT_OK)
        fail_msg("%s: %s", ot_status_name(p->outcomes[0].status), p->outcomes[0].message);
}

static void assert_same_outcome(const outcome *a, const outcome *b)
{
    assert_int_equal(a->n_steps, b->n_steps);
    assert_int_equal(a->n_values, b->n_values);
    assert_memory_equal(a->values, b->values, sizeof a->values);
    assert_int_equal(a->n_losses, b->n_losses);
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
}

// ---- bits ----

static void assert_ranks_do_not_matter(const char *text)
{
    static const int64_t slices[] = {4, 5, 8}, accumulations[] = {1, 3};
    static const int ranks[] = {2, 3, 4};

    for (size_t g = 0; g < OT_COUNT(slices); g++)
        for (size_t a = 0; a < OT_COUNT(accumulations); a++) {
            plan p = {.text = text,
                      .slices = slices[g],
                      .accumulation = accumulations[a],
                      .epochs = EPOCHS,
                      .bad_rank = -1};
            outcome one;

            run_plan(&p, 1);
            assert_runs_well(&p);
            one = p.outcomes[0];
            assert_true(one.n_values > 10 && one.losses[0] > 0 && one.losses[1] > 0);
            for (size_t n = 0; n < OT_COUNT(ranks); n++) {
                run_plan(&p, ranks[n]);
                assert_runs_well(&p);
                assert_same_outcome(&p.outcomes[0], &one);
            }
        }
}

static void a_perceptron_has_the_same_bits_on_any_number_of_ranks(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(perceptron);
}

static void so_have_running_statistics(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(convolution);
}

static double largest_difference(const outcome *a, const outcome *b)
{
    double most = 0;

    for (int i = 0; i < a->n_values; i++)
        most = fmax(most, fabs(a->values[i] - b->values[i]));
    return most;
}

// With uneven slices, too, and several batches a step.
static void statistics_of_all_ranks_are_those_of_whole_batches(void **state)
{
    static const struct {
        int64_t batch_size, accumulation;
        int n_ranks;
    } runs[] = {{4, 1, 2}, {4, 3, 2}, {5, 1, 2}, {5, 2, 3}, {10, 1, 3}, {10, 1, 4}};
    const double tolerance = 1e-12; // f64, other orders of sums

    (void)state;
    for (size_t i = 0; i < OT_COUNT(runs); i++)
        for (int zero = 0; zero < 3; zero++) {
            plan p = {.text = convolution,
                      .slices = 1,
                      .accumulation = runs[i].accumulation,
                      .epochs = EPOCHS,
                      .batch_size = runs[i].batch_size,
                      .bad_rank = -1};
            outcome one;

            run_plan(&p, 1);
            assert_runs_well(&p);
            one = p.outcomes[0];
            p.slices = 0;
            p.zero = zero;
            run_plan(&p, runs[i].n_ranks);
            assert_runs_well(&p);
            assert_true(largest_difference(&p.outcomes[0], &one) > 1e-4);
            p.syncs_norms = true;
            run_plan(&p, runs[i].n_ranks);
            assert_runs_well(&p);
            assert_int_equal(p.outcomes[0].n_values, one.n_values);
            if (!(largest_difference(&p.outcomes[0], &one) <= tolerance))
                fail_msg("run %d, zero %d: a parameter is off by %g", (int)i, zero,
                         largest_difference(&p.outcomes[0], &one));
            assert_float_equal(p.outcomes[0].losses[0], one.losses[0], tolerance);
        }
}

static void so_has_a_recurrent_layer(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(recurrent);
}

static void so_have_masks(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(dropped);
}

static void unless_said_there_are_as_many_slices_as_ranks(void **state)
{
    plan p = {.text = dropped, .slices = 3, .accumulation = 1, .epochs = EPOCHS, .bad_rank = -1};
    outcome one;

    (void)state;
    run_plan(&p, 1);
    one = p.outcomes[0];
    p.slices = 0;
    run_plan(&p, 3);
    assert_runs_well(&p);
    assert_same_outcome(&p.outcomes[0], &one);
}

// ---- saving ----

static void a_run_is_resumed_with_any_number_of_ranks(void **state)
{
    static const int ranks[] = {3, 1, 4, 2};
    plan p = {.text = convolution, .slices = 4, .accumulation = 2, .epochs = 4, .bad_rank = -1};
    outcome whole;

    p.folder = in_folder(state, "whole");
    run_plan(&p, 1);
    assert_runs_well(&p);
    whole = p.outcomes[0];
    p.folder = in_folder(state, "parts");
    for (int i = 0; i < 4; i++) {
        p.resumes = i > 0;
        p.slices = i > 0 ? 0 : 4;
        p.epochs = i + 1;
        run_plan(&p, ranks[i]);
        assert_runs_well(&p);
    }
    assert_int_equal(p.outcomes[0].n_steps, whole.n_steps);
    assert_memory_equal(p.outcomes[0].values, whole.values, sizeof whole.values);
}

static int count_directories(const char *folder)
{
    DIR *entries = opendir(folder);
    int n = 0;

    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        n += strncmp(entry->d_name, "step-", 5) == 0;
    if (entries != NULL)
        closedir(entries);
    return n;
}

// Files by one process and directories by several take turns; there is one checkpoint at a time.
static void formats_of_checkpoints_may_change_from_run_to_run(void **state)
{
    static const struct {
        int n_ranks, zero;
        ot_checkpoint_format format;
        bool saves_async, is_file;
    } runs[] = {
        {2, 0, OT_CHECKPOINT_FORMAT_AUTO, false, true},
        {1, 0, OT_CHECKPOINT_FORMAT_DIRECTORY, false, false},
        {3, 1, OT_CHECKPOINT_FORMAT_AUTO, true, false},
        {1, 1, OT_CHECKPOINT_FORMAT_AUTO, false, true},
        {2, 0, OT_CHECKPOINT_FORMAT_DIRECTORY, true, false},
        {1, 0, OT_CHECKPOINT_FORMAT_AUTO, true, false},
        {4, 0, OT_CHECKPOINT_FORMAT_FILE, false, true},
    };
    plan p = {.text = dropped, .slices = 4, .accumulation = 2, .epochs = 7, .bad_rank = -1};
    outcome whole;

    run_plan(&p, 1);
    assert_runs_well(&p);
    whole = p.outcomes[0];
    p.folder = in_folder(state, "run");
    for (size_t i = 0; i < OT_COUNT(runs); i++) {
        p.resumes = i > 0;
        p.slices = i > 0 ? 0 : 4;
        p.epochs = (int64_t)i + 1;
        p.zero = runs[i].zero;
        p.format = runs[i].format;
        p.saves_async = runs[i].saves_async;
        run_plan(&p, runs[i].n_ranks);
        assert_runs_well(&p);
        assert_int_equal(is_saved_as_file(&p), runs[i].is_file);
        assert_int_equal(count_directories(p.folder), !runs[i].is_file);
    }
    assert_int_equal(p.outcomes[0].n_steps, whole.n_steps);
    assert_memory_equal(p.outcomes[0].values, whole.values, sizeof whole.values);
}

// The steps of the run that is overwritten are later than its own.
static void of_a_run_that_is_overwritten_nothing_is_left(void **state)
{
    plan p = {.text = dropped,
              .slices = 2,
              .accumulation = 1,
              .epochs = 2,
              .bad_rank = -1,
              .format = OT_CHECKPOINT_FORMAT_DIRECTORY};

    p.folder = in_folder(state, "run");
    run_plan(&p, 2);
    assert_runs_well(&p);
    p.bad_rank = 1;
    p.stop_after = 1;
    p.saves_async = true;
    run_plan(&p, 2);
    assert_int_equal(p.outcomes[0].status, OT_ERR_INTERRUPTED);
    assert_int_equal(count_directories(p.folder), 1);
    assert_true(ot__path_is_folder(in_folder(state, "run/step-1")));
    p.format = OT_CHECKPOINT_FORMAT_FILE;
    p.saves_async = false;
    run_plan(&p, 2);
    assert_int_equal(count_directories(p.folder), 0);
    assert_true(is_saved_as_file(&p));
}

static void the_best_epoch_is_that_of_one_process(void **state)
{
    plan p = {.text = perceptron,
              .slices = 3,
              .accumulation = 1,
              .epochs = 12,
              .patience = 2,
              .keeps_best = true,
              .bad_rank = -1};
    outcome one;

    p.folder = in_folder(state, "one");
    run_plan(&p, 1);
    assert_runs_well(&p);
    one = p.outcomes[0];
    p.folder = in_folder(state, "three");
    run_plan(&p, 3);
    assert_runs_well(&p);
    assert_same_outcome(&p.outcomes[0], &one);
}

// ---- what goes wrong on one rank ----

static void a_stop_that_one_rank_wants_stops_all(void **state)
{
    plan p = {.text = convolution,
              .slices = 4,
              .accumulation = 1,
              .epochs = 3,
              .bad_rank = 2,
              .stop_after = 2};
    plan resumed = {.text = convolution, .accumulation = 1, .epochs = 3, .bad_rank = -1};
    outcome whole;

    p.folder = in_folder(state, "whole");
    p.bad_rank = -1;
    run_plan(&p, 2);
    whole = p.outcomes[0];
    p.bad_rank = 2;
    p.folder = resumed.folder = in_folder(state, "stopped");
    run_plan(&p, 3);
    assert_int_equal(p.outcomes[0].status, OT_ERR_INTERRUPTED);
    assert_int_equal(p.outcomes[0].n_steps, 2);
    resumed.resumes = true;
    run_plan(&resumed, 2);
    assert_runs_well(&resumed);
    assert_memory_equal(resumed.outcomes[0].values, whole.values, sizeof whole.values);
}

static void assert_fails(plan *p, int n_ranks, ot_status status, const char *message)
{
    run_plan(p, n_ranks);
    assert_int_equal(p->outcomes[0].status, status);
    if (strstr(p->outcomes[0].message, message) == NULL)
        fail_msg("'%s', expected '%s'", p->outcomes[0].message, message);
}

static void an_error_on_one_rank_is_that_of_all(void **state)
{
    plan p = {.text = convolution, .slices = 3, .accumulation = 3, .epochs = 2, .bad_rank = 1};

    (void)state;
    p.bad_target = (double)NAN;
    assert_fails(&p, 3, OT_ERR_INVALID, "rank 1: ");
    p.bad_target = 1e200;
    assert_fails(&p, 3, OT_ERR_NOT_FINITE, "rank 1: the loss is inf at batch 1 of epoch 1");
    assert_int_equal(p.outcomes[0].n_steps, 0);
}

static void statistics_of_all_ranks_need_a_row_and_one_slice_of_each(void **state)
{
    plan p = {.text = convolution,
              .slices = 4,
              .accumulation = 1,
              .epochs = 1,
              .batch_size = 10,
              .bad_rank = 1,
              .syncs_norms = true};

    (void)state;
    assert_fails(&p, 2, OT_ERR_INVALID, "slices: 4, expected 2, one for each process");
    assert_fails(&p, 1, OT_ERR_INVALID, "slices: 4, expected 1");
    p.slices = 0;
    p.batch_size = 4;
    assert_fails(&p, 3, OT_ERR_INVALID,
                 "the last batch has 2 rows, expected at least one for each of the 3 processes");
    p.batch_size = 5;
    p.bad_target = (double)NAN;
    assert_fails(&p, 3, OT_ERR_INVALID, "rank 1: ");
    p.bad_target = 1e200;
    assert_fails(&p, 3, OT_ERR_NOT_FINITE, "rank 1: the loss is inf");
}

static void ranks_that_would_not_do_the_same_are_told(void **state)
{
    plan p = {.text = perceptron, .slices = 3, .accumulation = 1, .epochs = 2, .bad_rank = 1};

    (void)state;
    p.has_other_row = true;
    assert_fails(&p, 2, OT_ERR_MISMATCH, "ranks 0 and 1 differ in the training rows");
    p.has_other_row = false;
    p.bad_epochs = 3;
    assert_fails(&p, 2, OT_ERR_MISMATCH, "ranks 0 and 1 differ in epochs: 2 and 3 (training)");
    p.bad_epochs = 0;
    p.bad_slices = 4;
    assert_fails(&p, 2, OT_ERR_MISMATCH, "ranks 0 and 1 differ in slices: 3 and 4 (training)");
    p.bad_slices = 1;
    assert_fails(&p, 2, OT_ERR_INVALID,
                 "rank 1: slices: 1, expected at least 1 for each of the 2 processes");
    p.bad_slices = 100000;
    assert_fails(&p, 2, OT_ERR_INVALID, "rank 1: slices: 100000, expected 1 to 32768, or 0");
}

static void what_cannot_be_saved_is_an_error_of_all(void **state)
{
    plan p = {.text = perceptron, .slices = 3, .accumulation = 1, .epochs = 2, .bad_rank = -1};
    FILE *file = fopen(in_folder(state, "file"), "w");

    assert_non_null(file);
    fclose(file);
    p.folder = in_folder(state, "file");
    assert_fails(&p, 3, OT_ERR_IO, "rank 0: ");
}

// `folder`: of checkpoints; NULL: none are saved.
static void lack_memory(int64_t slices, const char *folder, bool syncs_norms)
{
    plan p = {.text = convolution,
              .folder = folder,
              .slices = slices,
              .accumulation = 2,
              .epochs = 1,
              .saves_async = folder != NULL,
              .syncs_norms = syncs_norms};
    ot_status st = OT_ERR_NO_MEMORY;

    for (int64_t n = 1; st != OT_OK; n += 1 + n / 8) {
        p.bad_rank = (int)(n % 2);
        p.fail_at = n;
        run_plan(&p, 2);
        st = p.outcomes[0].status;
        if (st != OT_OK)
            assert_int_equal(st, OT_ERR_NO_MEMORY);
        assert_true(n < 100000);
    }
}

static void without_memory_on_one_rank_all_fail_alike(void **state)
{
    lack_memory(5, NULL, false);
    lack_memory(2, NULL, false); // sums begin while a step runs
    lack_memory(2, in_folder(state, "run"), false);
    lack_memory(2, NULL, true);
}

// ---- when sums begin ----

static void step_of_slice(ot_comm *comm, void *context)
{
    const double *weights = context;
    const int rank = ot_comm_rank(comm);
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_tensor *loss = NULL;
    world w;

    parallel.comm = comm;
    parallel.bucket_bytes = 1; // one for each parameter
    options.parallel = &parallel;
    RANK_MUST(open_world_over(&w, perceptron, &options));
    RANK_MUST(ot__session_set_slices(w.session, 2, rank, rank + 1));
    RANK_CHECK(ot__session_overlaps(w.session), "rank %d", rank);
    for (int n = 0; n < 2; n++) { // the first update, and one that follows
        ot__session_begin_slice(w.session, rank);
        RANK_MUST(ot__session_weigh(w.session, weights[rank]));
        ot__session_set_last(w.session);
        RANK_MUST(
            ot_session_train_step(w.session, (const ot_tensor *const *)w.tensors, 2, &loss, 1));
        for (int k = 0; k < w.session->ranks->n_buckets; k++)
            RANK_CHECK(w.session->ranks->buckets[k].is_started == (weights[rank] > 0.75),
                       "rank %d, bucket %d, update %d", rank, k, n);
        RANK_MUST(ot__session_end_slice(w.session));
        RANK_MUST(ot__session_update(w.session, OT_OK, 1, NULL));
        ot__session_reset_gradients(w.session);
    }
    ot_tensor_destroy(loss);
    close_world(&w);
}

static void sums_begin_in_the_last_step_of_a_slice_that_counts_once(void **state)
{
    static double weights[][2] = {{1, 1}, {1, 0.5}};

    (void)state;
    run_ranks(2, step_of_slice, weights[0]);
    run_ranks(2, step_of_slice, weights[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perceptron_has_the_same_bits_on_any_number_of_ranks),
        cmocka_unit_test(so_have_running_statistics),
        cmocka_unit_test(statistics_of_all_ranks_are_those_of_whole_batches),
        cmocka_unit_test(statistics_of_all_ranks_need_a_row_and_one_slice_of_each),
        cmocka_unit_test(so_has_a_recurrent_layer),
        cmocka_unit_test(so_have_masks),
        cmocka_unit_test(unless_said_there_are_as_many_slices_as_ranks),
        TEST_IN_FOLDER(a_run_is_resumed_with_any_number_of_ranks),
        TEST_IN_FOLDER(formats_of_checkpoints_may_change_from_run_to_run),
        TEST_IN_FOLDER(of_a_run_that_is_overwritten_nothing_is_left),
        TEST_IN_FOLDER(the_best_epoch_is_that_of_one_process),
        TEST_IN_FOLDER(a_stop_that_one_rank_wants_stops_all),
        cmocka_unit_test(an_error_on_one_rank_is_that_of_all),
        cmocka_unit_test(ranks_that_would_not_do_the_same_are_told),
        TEST_IN_FOLDER(what_cannot_be_saved_is_an_error_of_all),
        TEST_IN_FOLDER(without_memory_on_one_rank_all_fail_alike),
        cmocka_unit_test(sums_begin_in_the_last_step_of_a_slice_that_counts_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
