// SPDX-License-Identifier: Apache-2.0
// A training run that is stopped, saved, loaded and resumed ends with the bytes of one that was
// not: with shuffling, dropout, batch statistics, a schedule, clipping, accumulated micro-batches,
// a short last batch, early stop and the best epoch kept.
#include "loop_fixture.h"

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

// Of four rows or three each batch, so that slices differ and one has none.
static void a_resumed_run_has_the_slices_that_it_had(void **state)
{
    stop_everywhere(
        state,
        (run_plan){.epochs = EPOCHS, .learning_rate = 0.05, .slices = 4, .stop_at = OT_EVENT_STEP},
        EPOCHS * STEPS_PER_EPOCH - 1);
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
    assert_non_null(strstr(ot_error_message(), "another run saves into this directory: "));
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
        TEST_IN_FOLDER(a_resumed_run_has_the_slices_that_it_had),
        TEST_IN_FOLDER(a_run_stopped_after_every_step_ends_with_the_same_bytes),
        TEST_IN_FOLDER(two_runs_do_not_save_into_one_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
