// SPDX-License-Identifier: Apache-2.0
// What runs over several ranks save, go on with, and leave when they cannot save.
#include "loop_ranks_fixture.h"

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

// Of norms over all ranks there is a slice for each: as many as there are then.
static void so_is_one_with_statistics_of_all_ranks(void **state)
{
    static const int ranks[] = {3, 2, 1, 4};
    plan p = {.text = convolution,
              .slices = 1,
              .accumulation = 2,
              .epochs = 4,
              .batch_size = 5,
              .bad_rank = -1};
    outcome whole;

    run_plan(&p, 1);
    assert_runs_well(&p);
    whole = p.outcomes[0];
    p.slices = 0;
    p.syncs_norms = true;
    p.folder = in_folder(state, "run");
    for (int i = 0; i < 4; i++) {
        p.resumes = i > 0;
        p.epochs = i + 1;
        run_plan(&p, ranks[i]);
        assert_runs_well(&p);
    }
    assert_int_equal(p.outcomes[0].n_steps, whole.n_steps);
    for (int i = 0; i < whole.n_values; i++)
        assert_float_equal(p.outcomes[0].values[i], whole.values[i], 1e-12); // other orders of sums
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

// A run, and one that goes on from it for an epoch at a rate that is too high.
static void run_past_the_best_epoch(plan *p, int n_ranks, outcome ends[2])
{
    p->resumes = false;
    p->epochs = 2;
    p->rate = 0;
    run_plan(p, n_ranks);
    assert_runs_well(p);
    ends[0] = p->outcomes[0];
    p->resumes = true;
    p->epochs++;
    p->rate = 1;
    run_plan(p, n_ranks);
    assert_runs_well(p);
    ends[1] = p->outcomes[0];
}

static void the_best_epoch_is_that_of_one_process(void **state)
{
    plan p = {
        .text = perceptron, .slices = 3, .accumulation = 1, .keeps_best = true, .bad_rank = -1};
    outcome one[2], three[2];

    p.folder = in_folder(state, "one");
    run_past_the_best_epoch(&p, 1, one);
    // The epoch of the resumed run is no better: it ends with what it has loaded.
    assert_memory_equal(one[1].values, one[0].values, sizeof one[0].values);
    assert_true(one[1].n_steps > one[0].n_steps);
    for (p.zero = 0; p.zero <= 3; p.zero++) {
        char name[] = "zero-0";

        name[5] = (char)('0' + p.zero);
        p.folder = in_folder(state, name);
        run_past_the_best_epoch(&p, 3, three);
        for (int i = 0; i < 2; i++)
            assert_same_outcome(&three[i], &one[i]);
    }
}

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

static void name_latest(const char *folder, const char *text)
{
    char path[PATH_LENGTH_MAX + 16];

    snprintf(path, sizeof path, "%s/latest", folder);
    assert_int_equal(ot__file_write(path, text, strlen(text)), OT_OK);
}

static void move_in_folder(void **state, const char *from, const char *to)
{
    char path[PATH_LENGTH_MAX];

    snprintf(path, sizeof path, "%s", in_folder(state, from));
    assert_int_equal(rename(path, in_folder(state, to)), 0);
}

// A run that was overwritten has left a directory of a later step.
static void without_latest_the_directory_that_was_made_last_counts(void **state)
{
    plan p = {.text = dropped,
              .slices = 3,
              .accumulation = 1,
              .epochs = 2,
              .bad_rank = -1,
              .format = OT_CHECKPOINT_FORMAT_DIRECTORY};
    outcome whole;

    p.folder = in_folder(state, "run");
    run_plan(&p, 3);
    assert_runs_well(&p);
    whole = p.outcomes[0];
    move_in_folder(state, "run/step-6", "old");
    p.folder = in_folder(state, "run");
    p.epochs = 1;
    run_plan(&p, 3);
    assert_runs_well(&p);
    move_in_folder(state, "old", "run/step-50");
    p.folder = in_folder(state, "run");
    name_latest(p.folder, "no/name");
    p.resumes = true;
    p.epochs = 2;
    run_plan(&p, 3);
    assert_runs_well(&p);
    assert_int_equal(p.outcomes[0].n_events, whole.n_events / 2); // those of an epoch
    assert_memory_equal(p.outcomes[0].values, whole.values, sizeof whole.values);
    move_in_folder(state, "run/step-6", "run/step-5");
    p.folder = in_folder(state, "run");
    name_latest(p.folder, "step-6"); // is not there
    run_plan(&p, 2);
    assert_runs_well(&p);
    assert_int_equal(p.outcomes[0].n_steps, whole.n_steps);
    p.folder = in_folder(state, "run");
    name_latest(p.folder, "step-4"); // later ones are none of its run
    assert_fails(&p, 2, OT_ERR_NOT_FOUND,
                 "where there is no checkpoint; there is no other checkpoint to go on from");
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

static int count_staged(const char *folder)
{
    DIR *entries = opendir(folder);
    int n = 0;

    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        n += strncmp(entry->d_name, ".step-", 6) == 0;
    if (entries != NULL)
        closedir(entries);
    return n;
}

// Whenever a disk is full: at the beginning of a save, or at its end, some updates later.
static void what_finds_no_room_is_an_error_of_all_and_leaves_nothing(void **state)
{
    plan p = {.text = perceptron,
              .slices = 3,
              .accumulation = 1,
              .epochs = 1,
              .bad_rank = 0,
              .zero = 1,
              .saves_async = true};
    ot_status st = OT_ERR_IO;
    int n_failed = 0;

    p.folder = in_folder(state, "run");
    for (p.full_at = 1; st != OT_OK; p.full_at += 2, n_failed++) {
        run_plan(&p, 2);
        st = p.outcomes[0].status;
        if (st != OT_OK) {
            assert_int_equal(st, OT_ERR_IO);
            assert_int_equal(count_staged(p.folder), 0);
            if (p.outcomes[0].n_steps > 0) // the training has come to its end, for all that
                assert_int_equal(p.outcomes[0].n_steps, 3);
        }
        assert_true(n_failed < 1000);
    }
    assert_true(n_failed > 10);
}

// What has been saved is the end of the run, with the best epoch.
static void assert_saved(const plan *p, const outcome *whole)
{
    plan resumed = *p;

    resumed.resumes = true;
    resumed.bad_rank = -1;
    run_plan(&resumed, 1);
    assert_runs_well(&resumed);
    assert_int_equal(resumed.outcomes[0].n_steps, whole->n_steps);
    assert_memory_equal(resumed.outcomes[0].values, whole->values, sizeof whole->values);
}

// A file call fails, and later ones do not.
static void break_saves_at(void **state, const plan *like, int64_t stride)
{
    const char *const folder = in_folder(state, "run");
    plan p = *like;
    outcome whole;
    int n_endured = 0;

    run_plan(&p, 2);
    assert_runs_well(&p);
    whole = p.outcomes[0];
    p.folder = folder;
    run_plan(&p, 2);
    assert_saved(&p, &whole);
    for (int rank = 0; rank < 2; rank++) {
        const int64_t n_calls = p.outcomes[rank].n_file_calls;

        p.bad_rank = rank;
        for (p.broken_at = 1 + rank; p.broken_at <= n_calls; p.broken_at += stride) {
            run_plan(&p, 2);
            if (p.outcomes[0].status != OT_OK) { // the folder, or the last save
                assert_int_equal(p.outcomes[0].status, OT_ERR_IO);
                continue;
            }
            assert_memory_equal(p.outcomes[0].values, whole.values, sizeof whole.values);
            assert_int_equal(p.outcomes[1].n_lost_saves, 0); // rank 0 is told
            if (p.outcomes[0].n_lost_saves > 0) {
                n_endured++;
                assert_saved(&p, &whole);
            }
        }
    }
    assert_true(n_endured > 2);
}

static void a_save_that_fails_is_tried_again_and_the_run_goes_on(void **state)
{
    const plan file = {.text = perceptron,
                       .slices = 3,
                       .accumulation = 1,
                       .epochs = 3,
                       .rate = 1, // the first epoch is the best
                       .keeps_best = true,
                       .saves_epochs = true,
                       .bad_rank = -1};
    plan parts = file;

    parts.zero = 3;
    parts.saves_async = true;
    break_saves_at(state, &file, 5);
    break_saves_at(state, &parts, 11);
}

static void without_memory_for_a_save_all_fail_alike(void **state)
{
    static const struct {
        const char *folder;
        int zero;
    } runs[] = {{"run", 0}, {"parts", 1}, {"values", 3}};

    for (size_t i = 0; i < OT_COUNT(runs); i++) {
        plan p = {.text = convolution,
                  .slices = 2,
                  .accumulation = 2,
                  .epochs = 1,
                  .zero = runs[i].zero,
                  .keeps_best = runs[i].zero == 3,
                  .saves_async = true};

        p.folder = in_folder(state, runs[i].folder);
        lack_memory(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_run_is_resumed_with_any_number_of_ranks),
        TEST_IN_FOLDER(so_is_one_with_statistics_of_all_ranks),
        TEST_IN_FOLDER(formats_of_checkpoints_may_change_from_run_to_run),
        TEST_IN_FOLDER(of_a_run_that_is_overwritten_nothing_is_left),
        TEST_IN_FOLDER(the_best_epoch_is_that_of_one_process),
        TEST_IN_FOLDER(a_stop_that_one_rank_wants_stops_all),
        TEST_IN_FOLDER(without_latest_the_directory_that_was_made_last_counts),
        TEST_IN_FOLDER(what_cannot_be_saved_is_an_error_of_all),
        TEST_IN_FOLDER(what_finds_no_room_is_an_error_of_all_and_leaves_nothing),
        TEST_IN_FOLDER(a_save_that_fails_is_tried_again_and_the_run_goes_on),
        TEST_IN_FOLDER(without_memory_for_a_save_all_fail_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
