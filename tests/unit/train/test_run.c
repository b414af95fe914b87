// SPDX-License-Identifier: Apache-2.0
// What a run does with its options besides training.
#include <math.h>

#include "options/users.h"

static ot_status run(world *w, const ot_train_options *options)
{
    ot_trainer *trainer;
    ot_status st;

    must(ot_trainer_create_from_session(w->session, NULL, NULL, &trainer));
    st = ot_train_run(trainer, w->batches, NULL, options, NULL);
    ot_trainer_destroy(trainer);
    return st;
}

static const char *path_in(const world *w, const char *name)
{
    static char path[PATH_LENGTH_MAX];

    snprintf(path, sizeof path, "%s/%s", (const char *)w->folder, name);
    return path;
}

static void options_are_the_first_line_of_the_log_and_a_property(void **state)
{
    static const char config[] = "{\"train\":{\"epochs\":1}}";
    world *w = *state;
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    const char *saved;
    char line[200];
    FILE *log;

    options.config = config;
    options.log = path_in(w, "log");
    must(run(w, &options));
    log = fopen(options.log, "r");
    assert_non_null(log);
    assert_non_null(fgets(line, sizeof line, log));
    assert_string_equal(line, "{\"event\":\"options\",\"options\":{\"train\":{\"epochs\":1}}}\n");
    assert_non_null(fgets(line, sizeof line, log));
    assert_non_null(strstr(line, "{\"event\":\"step\",\"epoch\":1,\"step\":"));
    fclose(log);
    must(ot_checkpoint_get_string(ot_session_checkpoint(w->session), "onnxtrain.options", &saved));
    assert_string_equal(saved, config);
}

static void options_that_are_no_line_of_json_are_refused(void **state)
{
    static const char *const wrong[] = {"", "{", "{\"a\":\n1}", "{} {}", "{\"a\":1,\"a\":2}"};
    world *w = *state;
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;

    options.log = path_in(w, "none");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.config = wrong[i];
        assert_int_equal(run(w, &options), OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), "config: "));
        assert_int_not_equal(access(options.log, F_OK), 0);
    }
    options.config = NULL;
    options.n_notes = 1;
    assert_int_equal(run(w, &options), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "n_notes is 1 and notes is NULL");
}

// Three epochs of one batch: the rate of the step to come falls to 0 by a third each.
static void a_schedule_without_an_end_ends_with_the_run(void **state)
{
    world *w = *state;
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_schedule schedule = OT_SCHEDULE_INIT;
    const int64_t before = ot_session_step_count(w->session);

    schedule.kind = OT_SCHEDULE_LINEAR;
    schedule.total_steps = before + 6;
    options.schedule = &schedule;
    options.epochs = 3;
    must(run(w, &options));
    assert_true(fabs(ot_session_learning_rate(w->session) - 1e-3 * 3 / (double)(before + 6)) <
                1e-12);
    schedule.total_steps = 0;
    options.epochs = before + 6;
    options.max_steps = 3;
    must(run(w, &options));
    assert_true(ot_session_learning_rate(w->session) == 0);
    schedule.kind = OT_SCHEDULE_STEP;
    schedule.step_size = 0;
    assert_int_equal(run(w, &options), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "schedule: step_size is 0"));
}

static void count_warnings(void *context, ot_log_level level, const char *text)
{
    *(int *)context += level == OT_LOG_WARNING && strstr(text, "/dev/full: cannot be written");
}

static void a_lost_log_is_a_warning_and_the_run_goes_on(void **state)
{
    world *w = *state;
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    const int64_t before = ot_session_step_count(w->session);
    int n_warnings = 0;

    if (access("/dev/full", F_OK) != 0)
        skip(); // no file here cannot be written: systems other than Linux
    options.log = "/dev/full";
    options.epochs = 2;
    ot_set_log(count_warnings, &n_warnings);
    must(run(w, &options));
    ot_set_log(NULL, NULL);
    assert_int_equal(n_warnings, 1);
    assert_int_equal(ot_session_step_count(w->session), before + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_the_first_line_of_the_log_and_a_property),
        cmocka_unit_test(options_that_are_no_line_of_json_are_refused),
        cmocka_unit_test(a_schedule_without_an_end_ends_with_the_run),
        cmocka_unit_test(a_lost_log_is_a_warning_and_the_run_goes_on),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
