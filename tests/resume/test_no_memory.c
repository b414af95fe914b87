// SPDX-License-Identifier: Apache-2.0
// Memory runs out at the first, second ... allocation of a run: it ends with OT_ERR_NO_MEMORY,
// leaks nothing (the sanitizer looks), and what stands in the folder goes on to the end of a whole
// run.
#include "loop_fixture.h"

// Of the later ones of a long run only here and there.
static int64_t next(int64_t n)
{
    return n + 1 + n / 16;
}

static void check_every_allocation(void **state, run_plan plan)
{
    char whole[PATH_LENGTH_MAX], folder[PATH_LENGTH_MAX];
    run_plan resumed = plan;
    int n_failures = 0, n_begun = 0;
    bool is_done = false;
    watch seen;

    write_rows(in_folder(state, "rows.csv"));
    copy_path(whole, in_folder(state, "whole"));
    need(run(state, whole, &plan, &seen));
    for (int64_t n = 1; !is_done && n < 100000; n = next(n)) {
        char name[32], checkpoint[PATH_LENGTH_MAX + 32];
        ot_status st;

        snprintf(name, sizeof name, "failed%" PRId64, n);
        copy_path(folder, in_folder(state, name));
        snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint", folder);
        plan.fail_at = n;
        st = run(state, folder, &plan, &seen);
        is_done = st == OT_OK;
        if (!is_done && st != OT_ERR_NO_MEMORY)
            fail_msg("allocation %" PRId64 ": %s: %s", n, ot_status_name(st), ot_error_message());
        n_failures += !is_done;
        n_begun += !is_done && ot__path_exists(checkpoint);
        need(run(state, folder, &resumed, &seen));
        assert_same_file(whole, folder, "checkpoint");
        if (plan.keep_best)
            assert_same_file(whole, folder, "best");
    }
    assert_true(is_done);
    assert_true(n_failures > 20 && n_begun > 5);
}

static void a_run_that_lacks_memory_loses_no_saved_step(void **state)
{
    check_every_allocation(
        state, (run_plan){.epochs = 2, .learning_rate = 0.05, .save_every = 1, .overwrite = true});
}

static void so_does_one_that_keeps_the_best_epoch(void **state)
{
    check_every_allocation(state, (run_plan){.epochs = 2,
                                             .learning_rate = 0.05,
                                             .save_every = 1,
                                             .keep_best = true,
                                             .overwrite = true});
}

static void so_does_one_by_slices(void **state)
{
    check_every_allocation(
        state,
        (run_plan){
            .epochs = 1, .learning_rate = 0.05, .save_every = 1, .slices = 3, .overwrite = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_run_that_lacks_memory_loses_no_saved_step),
        TEST_IN_FOLDER(so_does_one_that_keeps_the_best_epoch),
        TEST_IN_FOLDER(so_does_one_by_slices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
