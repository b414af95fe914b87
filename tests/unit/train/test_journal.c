// SPDX-License-Identifier: Apache-2.0
// What lines and records hold is here; tests/python/test_journal.py reads both of whole runs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/journal.h"
#include "unit/base/temporary_folder.h"

static const ot_event a_step = {.kind = OT_EVENT_STEP,
                                .epoch = 1,
                                .step = 7,
                                .learning_rate = 0.001,
                                .training = {.rows = 20, .loss = 0.25, .accuracy = 0.5}};

static char *read_text(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "rb");
    size_t n = 0;

    assert_non_null(file);
    n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    return text;
}

static void forget(void *context, const char *path)
{
    (void)path;
    ++*(int *)context;
}

static void open_journal(ot__journal *j, const ot_train_options *options)
{
    const ot__position at = {.epoch = 1, .sums = {.rows = 10, .loss = 3}};

    if (ot__journal_open(j, options, &at, 6) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static void every_event_is_a_line(void **state)
{
    const char *path = in_folder(state, "log"), *const notes[] = {"take \"care\"", "twice"};
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_event event = a_step;
    ot__journal j;
    int n_lost = 0;

    options.log = path;
    options.notes = notes;
    options.n_notes = 2;
    options.config = "{\"a\":[1,2]}";
    options.task = OT_TASK_CLASSIFICATION;
    options.metric_output = 1;
    open_journal(&j, &options);
    ot__journal_event(&j, &event, forget, &n_lost);
    event.kind = OT_EVENT_EPOCH;
    event.validation = (ot_metrics){.rows = 3, .loss = (double)INFINITY, .accuracy = 1};
    ot__journal_event(&j, &event, forget, &n_lost);
    event.kind = OT_EVENT_SAVED;
    event.path = "d/\xff/checkpoint";
    ot__journal_event(&j, &event, forget, &n_lost);
    event.kind = OT_EVENT_EARLY_STOP;
    ot__journal_event(&j, &event, forget, &n_lost);
    ot__journal_close(&j);
    assert_int_equal(n_lost, 0);
    assert_string_equal(read_text(path),
                        "{\"event\":\"options\",\"options\":{\"a\":[1,2]}}\n"
                        "{\"event\":\"note\",\"text\":\"take \\\"care\\\"\"}\n"
                        "{\"event\":\"note\",\"text\":\"twice\"}\n"
                        "{\"event\":\"step\",\"epoch\":2,\"step\":7,\"lr\":0.001,"
                        "\"training\":{\"rows\":20,\"loss\":0.25,\"accuracy\":0.5}}\n"
                        "{\"event\":\"epoch\",\"epoch\":2,\"step\":7,\"lr\":0.001,"
                        "\"training\":{\"rows\":20,\"loss\":0.25,\"accuracy\":0.5},"
                        "\"validation\":{\"rows\":3,\"loss\":null,\"accuracy\":1.0}}\n"
                        "{\"event\":\"saved\",\"epoch\":2,\"step\":7,\"lr\":0.001,"
                        "\"path\":\"d/\\udcff/checkpoint\"}\n"
                        "{\"event\":\"early_stop\",\"epoch\":2,\"step\":7,\"lr\":0.001,"
                        "\"training\":{\"rows\":20,\"loss\":0.25,\"accuracy\":0.5}}\n");
}

static void a_resumed_run_goes_on_with_its_log(void **state)
{
    const char *path = in_folder(state, "log"), *const notes[] = {"once"};
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    static const char line[] = "{\"event\":\"note\",\"text\":\"once\"}\n";
    char twice[2 * sizeof line];
    ot__journal j;

    options.log = path;
    options.notes = notes;
    options.n_notes = 1;
    snprintf(twice, sizeof twice, "%s%s", line, line);
    for (int i = 0; i < 3; i++) {
        options.resume = i == 1;
        open_journal(&j, &options);
        ot__journal_close(&j);
        assert_string_equal(read_text(path), i == 1 ? twice : line);
    }
}

// One record after the version: wall time, step, and the summary of the loss of 10 rows and the
// rate. The epoch had 10 rows with the sum 3, and now has 20 with the sum 5.
static void a_step_is_a_record_of_its_own_loss(void **state)
{
    static const unsigned char expected[] = {
        0x10, 7,                            // step
        0x2a, 2 * (2 + 2) + 10 + 8 + 2 * 5, // summary
        0x0a, 2 + 10 + 5,
        0x0a, 10,
        't',  'r',
        'a',  'i',
        'n',  '/', // value: tag
        'l',  'o',
        's',  's',
        0x15, 0xcd,
        0xcc, 0x4c,
        0x3e, // 0.2f
        0x0a, 2 + 8 + 5,
        0x0a, 8,
        't',  'r',
        'a',  'i',
        'n',  '/', // value: tag
        'l',  'r',
        0x15, 0x6f,
        0x12, 0x83,
        0x3a, // 0.001f
    };
    enum { HEAD = 12, TIME = 9, TAIL = 4 };
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot__buf out = {0};
    ot__journal j;
    uint64_t length;

    options.tensorboard_dir = in_folder(state, "made/here");
    open_journal(&j, &options);
    assert_int_equal(count_entries(options.tensorboard_dir), 1);
    ot__journal_events(&j, &a_step, &out);
    memcpy(&length, out.data, sizeof length);
    assert_int_equal(length, TIME + sizeof expected);
    assert_int_equal(out.length, HEAD + length + TAIL);
    assert_memory_equal(out.data + HEAD + TIME, expected, sizeof expected);
    ot__buf_deinit(&out);
    ot__journal_close(&j);
}

static bool has_tag(const ot__buf *out, const char *tag)
{
    const size_t n = strlen(tag);

    for (size_t i = 0; i + n + 2 <= out->length; i++)
        if ((unsigned char)out->data[i] == 0x0a && (size_t)(unsigned char)out->data[i + 1] == n &&
            memcmp(out->data + i + 2, tag, n) == 0)
            return true;
    return false;
}

// Rows of a step that is skipped have no loss: neither 0/0 nor the mean of those before it.
static void a_skipped_step_has_no_loss(void **state)
{
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_event event = a_step;
    ot__journal j;

    options.tensorboard_dir = in_folder(state, "skipped");
    open_journal(&j, &options);
    for (int first = 0; first < 2; first++) {
        ot__buf out = {0};

        event.epoch += first;
        event.training.rows = first ? 0 : j.rows;
        event.n_skipped = 1;
        ot__journal_events(&j, &event, &out);
        assert_false(has_tag(&out, "train/loss"));
        assert_true(has_tag(&out, "train/lr"));
        assert_true(has_tag(&out, "train/skipped"));
        ot__buf_deinit(&out);
    }
    ot__journal_close(&j);
}

static void two_runs_of_one_second_have_files_of_their_own(void **state)
{
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot__journal first, second;

    options.tensorboard_dir = *state;
    open_journal(&first, &options);
    open_journal(&second, &options);
    ot__journal_close(&first);
    ot__journal_close(&second);
    assert_int_equal(count_entries(*state), 2);
}

static void a_file_that_cannot_be_written_is_given_up_once(void **state)
{
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot__journal j;
    int n_lost = 0;

    options.log = "/dev/full";
    options.tensorboard_dir = *state;
    if (!ot__path_exists(options.log))
        skip(); // no file here cannot be written: systems other than Linux
    open_journal(&j, &options);
    for (int i = 0; i < 3; i++)
        ot__journal_event(&j, &a_step, forget, &n_lost);
    assert_int_equal(n_lost, 1);
    assert_non_null(strstr(ot_error_message(), "/dev/full: cannot be written: "));
    assert_null(j.files[OT_JOURNAL_JSON]);
    assert_non_null(j.files[OT_JOURNAL_EVENTS]);
    ot__journal_close(&j);
}

static void files_that_cannot_be_made_are_errors(void **state)
{
    const ot__position at = {0};
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot__journal j;

    options.log = in_folder(state, "nowhere/log");
    assert_int_equal(ot__journal_open(&j, &options, &at, 0), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "nowhere/log: cannot be written: "));
    ot__journal_close(&j);
    options.log = in_folder(state, "log");
    options.tensorboard_dir = options.log; // a file
    assert_int_equal(ot__journal_open(&j, &options, &at, 0), OT_ERR_IO);
    ot__journal_close(&j);
}

static void every_allocation_may_fail(void **state)
{
    const ot__position at = {0};
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_status st = OT_ERR_NO_MEMORY;
    int n_lost = 1;

    options.log = in_folder(state, "log");
    options.tensorboard_dir = *state;
    for (int n = 0; st != OT_OK || n_lost > 0; n++) {
        ot__journal j;

        n_lost = 0;
        ot__alloc_fail_after(n);
        st = ot__journal_open(&j, &options, &at, 3);
        if (st == OT_OK)
            ot__journal_event(&j, &a_step, forget, &n_lost);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot__journal_close(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(every_event_is_a_line),
        TEST_IN_FOLDER(a_resumed_run_goes_on_with_its_log),
        TEST_IN_FOLDER(a_step_is_a_record_of_its_own_loss),
        TEST_IN_FOLDER(a_skipped_step_has_no_loss),
        TEST_IN_FOLDER(two_runs_of_one_second_have_files_of_their_own),
        TEST_IN_FOLDER(a_file_that_cannot_be_written_is_given_up_once),
        TEST_IN_FOLDER(files_that_cannot_be_made_are_errors),
        TEST_IN_FOLDER(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
