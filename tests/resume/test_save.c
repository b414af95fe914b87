// SPDX-License-Identifier: Apache-2.0
// What a run leaves on the disk when it diverges, fails, is killed or meets what another run has
// left there; and what it says of its end.
#include <locale.h>
#include <math.h>
#include <sys/wait.h>

#include "base/file_calls.h"
#include "loop_fixture.h"

enum { ROW_LENGTH_MAX = 128, KILLS_MAX = 400 };

// Weights of this rate's size are finite, what is computed with them is not.
static const double ruinous_rate = 1e20;

typedef struct kept_file {
    unsigned char *bytes;
    size_t size;
} kept_file;

static kept_file keep(const char *folder, const char *name)
{
    ot__file_map map;
    kept_file kept;
    file_path path;

    path_in(path, folder, name);
    need(ot__file_map_open(&map, path));
    kept = (kept_file){malloc(map.size), map.size};
    memcpy(kept.bytes, map.data, map.size);
    ot__file_map_close(&map);
    return kept;
}

static void assert_unchanged(kept_file *kept, const char *folder, const char *name)
{
    kept_file now = keep(folder, name);

    assert_int_equal(now.size, kept->size);
    assert_memory_equal(now.bytes, kept->bytes, kept->size);
    free(now.bytes);
    free(kept->bytes);
}

static bool exists(const char *folder, const char *name)
{
    file_path path;

    path_in(path, folder, name);
    return ot__path_exists(path);
}

static const char *start(void **state, char folder[PATH_LENGTH_MAX])
{
    write_rows(in_folder(state, "rows.csv"));
    copy_path(folder, in_folder(state, "run"));
    return folder;
}

static void assert_message(const char *text)
{
    if (strstr(ot_error_message(), text) == NULL)
        fail_msg("'%s' lacks '%s'", ot_error_message(), text);
}

// ---- divergence ----

static void a_run_that_diverges_leaves_the_checkpoint_before_it(void **state)
{
    run_plan plan = {.epochs = 3, .learning_rate = 0.05, .save_every = 1, .keep_best = true};
    char folder[PATH_LENGTH_MAX];
    kept_file checkpoint, best;
    watch seen;

    start(state, folder);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    checkpoint = keep(folder, "checkpoint");
    best = keep(folder, "best");
    plan.epochs = 6;
    plan.new_rate = ruinous_rate;
    assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_NOT_FINITE);
    assert_message("lower the learning rate, or clip gradients");
    assert_unchanged(&checkpoint, folder, "checkpoint");
    assert_unchanged(&best, folder, "best");
    plan.new_rate = 0.05;
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_int_equal(seen.n_steps, 3 * STEPS_PER_EPOCH);
    assert_true(isfinite(seen.last.loss));
}

// No step comes after the last one, which would show that it was one too many.
static void a_last_step_that_ruins_the_parameters_is_not_saved(void **state)
{
    run_plan plan = {.epochs = 2, .learning_rate = 0.05};
    char folder[PATH_LENGTH_MAX];
    kept_file checkpoint;
    watch seen;

    start(state, folder);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    checkpoint = keep(folder, "checkpoint");
    plan.epochs = 3;
    plan.max_steps = 2 * STEPS_PER_EPOCH + 1;
    plan.new_rate = ruinous_rate;
    assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_NOT_FINITE);
    assert_message("after step 7");
    assert_int_equal(seen.n_steps, 1);
    assert_unchanged(&checkpoint, folder, "checkpoint");
    plan.has_no_folder = plan.is_fresh = true; // and without one it is no success either
    plan.max_steps = 3;
    plan.learning_rate = ruinous_rate;
    assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_NOT_FINITE);
}

static void a_run_stopped_after_the_step_that_ruins_it_does_not_save(void **state)
{
    run_plan plan = {.epochs = 1, .learning_rate = 0.05};
    char folder[PATH_LENGTH_MAX];
    kept_file checkpoint;
    watch seen;

    start(state, folder);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    checkpoint = keep(folder, "checkpoint");
    plan = (run_plan){
        .epochs = 2, .new_rate = ruinous_rate, .stop_at = OT_EVENT_STEP, .stop_after = 1};
    assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_NOT_FINITE);
    assert_unchanged(&checkpoint, folder, "checkpoint");
}

// ---- errors on the way ----

enum { NO_ROW = -1 };

static void spoil_row(const char *path, int row)
{
    FILE *file;

    write_rows(path);
    if (row == NO_ROW)
        return;
    file = fopen(path, "r+");
    assert_non_null(file);
    for (int r = 0; r < row; r++) {
        char text[ROW_LENGTH_MAX];

        assert_non_null(fgets(text, sizeof text, file));
    }
    assert_int_equal(fseek(file, 0, SEEK_CUR), 0);
    fputs("x", file);
    fclose(file);
}

// A row of each batch of each step. Batches of a step that is not whole, with the statistics that
// they moved and the masks that they drew, are as if they had not been.
static void check_error_in_the_data(void **state, int64_t accumulation)
{
    const int steps = (N_ROWS - 1) / BATCH / (int)accumulation + 1;
    run_plan plan = {.epochs = 2, .learning_rate = 0.05, .accumulation = accumulation};
    char folder[PATH_LENGTH_MAX], whole[PATH_LENGTH_MAX];
    int n_resumed = 0;
    watch seen;

    start(state, folder);
    copy_path(whole, in_folder(state, "whole"));
    assert_int_equal(run(state, whole, &plan, &seen), OT_OK);
    for (int row = 0; row < N_ROWS; row += 2) {
        char name[32], line[32];
        int64_t done;

        snprintf(name, sizeof name, "spoiled%d", row);
        snprintf(line, sizeof line, "line %d, column 1", row + 1);
        copy_path(folder, in_folder(state, name));
        spoil_row(in_folder(state, "rows.csv"), row);
        assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_INVALID);
        assert_message(line);
        done = seen.n_steps;
        assert_int_equal(exists(folder, "checkpoint"), done > 0);
        n_resumed += done > 0;
        spoil_row(in_folder(state, "rows.csv"), NO_ROW);
        assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
        assert_int_equal(seen.n_steps, 2 * steps - done);
        assert_same_file(whole, folder, "checkpoint");
    }
    assert_true(n_resumed > 0);
}

static void an_error_in_the_data_loses_no_step(void **state)
{
    check_error_in_the_data(state, 1);
}

static void an_error_within_a_step_loses_no_step_before_it(void **state)
{
    check_error_in_the_data(state, ACCUMULATION);
}

static void killed(void **state, const char *folder, const run_plan *plan, int n_calls)
{
    watch seen;

    ot__file_fault_after(n_calls, OT_FILE_KILL);
    _exit(run(state, folder, plan, &seen) == OT_OK ? 0 : 1);
}

// Whenever the process is killed while it writes, what stands there goes on to the same end.
static void a_kill_at_any_system_call_loses_no_saved_step(void **state)
{
    const run_plan first = {.epochs = 1, .learning_rate = 0.05, .keep_best = true, .n_threads = 1};
    const run_plan whole_plan = {
        .epochs = 2, .learning_rate = 0.05, .save_every = 2, .keep_best = true, .n_threads = 1};
    char whole[PATH_LENGTH_MAX], folder[PATH_LENGTH_MAX];
    bool is_killed = true;
    watch seen;

    start(state, folder);
    copy_path(whole, in_folder(state, "whole"));
    assert_int_equal(run(state, whole, &whole_plan, &seen), OT_OK);
    for (int n = 0; is_killed && n < KILLS_MAX; n += 7) {
        char name[32];
        pid_t child;
        int status;

        snprintf(name, sizeof name, "killed%d", n);
        copy_path(folder, in_folder(state, name));
        assert_int_equal(run(state, folder, &first, &seen), OT_OK);
        fflush(NULL);
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
            killed(state, folder, &whole_plan, n);
        assert_int_equal(waitpid(child, &status, 0), child);
        is_killed = WIFSIGNALED(status);
        assert_true(is_killed || WEXITSTATUS(status) == 0);
        assert_int_equal(run(state, folder, &whole_plan, &seen), OT_OK);
        assert_true(seen.n_steps <= STEPS_PER_EPOCH);
        assert_same_file(whole, folder, "checkpoint");
        assert_same_file(whole, folder, "best");
    }
    assert_false(is_killed);
}

// ---- folders of other runs ----

static void a_folder_with_a_checkpoint_is_not_begun_anew(void **state)
{
    run_plan plan = {.epochs = 1, .learning_rate = 0.05, .keep_best = true};
    char folder[PATH_LENGTH_MAX];
    kept_file checkpoint;
    watch seen;

    start(state, folder);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    checkpoint = keep(folder, "checkpoint");
    plan.is_fresh = true;
    assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_STATE);
    assert_message("run/checkpoint is of an earlier run: resume it, or overwrite it");
    assert_unchanged(&checkpoint, folder, "checkpoint");
    plan.overwrite = true;
    plan.keep_best = false;
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_int_equal(seen.n_steps, STEPS_PER_EPOCH);
    assert_false(exists(folder, "best")); // it was the other run's
}

// ---- the end ----

static void a_run_that_has_all_its_steps_makes_no_more(void **state)
{
    const run_plan plan = {.epochs = 2, .learning_rate = 0.05, .max_steps = 4};
    char folder[PATH_LENGTH_MAX];
    kept_file checkpoint;
    watch seen;

    start(state, folder);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_int_equal(seen.n_steps, 4);
    checkpoint = keep(folder, "checkpoint");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
        assert_int_equal(seen.n_steps, 0);
    }
    assert_unchanged(&checkpoint, folder, "checkpoint");
}

static void assert_metrics(const ot_metrics *found, const ot_metrics *expected)
{
    assert_int_equal(found->rows, expected->rows);
    assert_true(found->loss == expected->loss && found->accuracy == expected->accuracy);
}

static void the_result_is_what_the_last_epoch_has_measured(void **state)
{
    run_plan plan = {.epochs = 2, .learning_rate = 0.05};
    char folder[PATH_LENGTH_MAX];
    ot_metrics first;
    watch seen;

    start(state, folder);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_metrics(&seen.last, &seen.epoch.validation);
    first = seen.last;
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK); // which has nothing to do
    assert_metrics(&seen.last, &first);
    plan.has_no_validation = plan.is_fresh = plan.overwrite = true;
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_metrics(&seen.last, &seen.epoch.training);
    assert_int_equal(seen.last.rows, N_ROWS);
}

static void the_result_of_the_best_epoch_is_that_epochs(void **state)
{
    run_plan plan = {.epochs = 8, .learning_rate = 0.5, .keep_best = true};
    char folder[PATH_LENGTH_MAX];
    watch seen;

    start(state, folder);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_true(seen.best.epoch < seen.epoch.epoch);
    assert_metrics(&seen.last, &seen.best.validation);
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK); // known from the checkpoint
    assert_true(isfinite(seen.last.loss) && seen.last.rows == N_ROWS);
    plan.epochs = 9;
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    assert_true(seen.last.loss <= seen.epoch.validation.loss);
}

static void a_decimal_comma_changes_nothing(void **state)
{
    static const char *const with_comma[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    run_plan plan = {.epochs = 2, .learning_rate = 0.05, .stop_at = OT_EVENT_STEP, .stop_after = 2};
    char folder[PATH_LENGTH_MAX], whole[PATH_LENGTH_MAX];
    bool found = false;
    watch seen;

    start(state, folder);
    copy_path(whole, in_folder(state, "whole"));
    assert_int_equal(run(state, folder, &plan, &seen), OT_ERR_INTERRUPTED);
    for (size_t i = 0; i < OT_COUNT(with_comma) && !found; i++)
        found = setlocale(LC_ALL, with_comma[i]) != NULL;
    if (!found || strcmp(localeconv()->decimal_point, ",") != 0)
        skip(); // no such locale is installed
    plan.stop_after = 0;
    assert_int_equal(run(state, folder, &plan, &seen), OT_OK);
    setlocale(LC_ALL, "C");
    assert_int_equal(run(state, whole, &plan, &seen), OT_OK);
    assert_same_file(whole, folder, "checkpoint");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_run_that_diverges_leaves_the_checkpoint_before_it),
        TEST_IN_FOLDER(a_last_step_that_ruins_the_parameters_is_not_saved),
        TEST_IN_FOLDER(a_run_stopped_after_the_step_that_ruins_it_does_not_save),
        TEST_IN_FOLDER(an_error_in_the_data_loses_no_step),
        TEST_IN_FOLDER(an_error_within_a_step_loses_no_step_before_it),
        TEST_IN_FOLDER(a_kill_at_any_system_call_loses_no_saved_step),
        TEST_IN_FOLDER(a_folder_with_a_checkpoint_is_not_begun_anew),
        TEST_IN_FOLDER(a_run_that_has_all_its_steps_makes_no_more),
        TEST_IN_FOLDER(the_result_is_what_the_last_epoch_has_measured),
        TEST_IN_FOLDER(the_result_of_the_best_epoch_is_that_epochs),
        TEST_IN_FOLDER(a_decimal_comma_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
