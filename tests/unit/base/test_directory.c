// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file_calls.h"
#include "forked.h"
#include "temporary_folder.h"

static ot_status put_text(const char *folder, const char *text)
{
    char *path = ot__path_join(folder, "text");
    ot__file_writer *file = NULL;
    ot_status st = ot__made(path != NULL);

    OT_THEN(st, ot__file_writer_open_within(&file, path));
    OT_THEN(st, ot__file_writer_write(file, text, strlen(text)));
    if (st == OT_OK)
        st = ot__file_writer_commit(file);
    else
        ot__file_writer_abort(file);
    ot__free(path);
    return st;
}

static ot_status make(const char *path, const char *text, bool replaces)
{
    ot__staging staging;
    ot_status st = ot__staging_open(&staging, path);

    OT_THEN(st, put_text(staging.place, text));
    OT_THEN(st, ot__staging_publish(&staging, replaces, NULL));
    ot__staging_close(&staging);
    return st;
}

// What the file in a directory says; "": there is none.
static const char *text_in(const char *folder)
{
    static char text[16];
    char path[PATH_LENGTH_MAX + sizeof "/text"];
    FILE *in;

    snprintf(path, sizeof path, "%s/text", folder);
    in = fopen(path, "r");
    text[0] = '\0';
    if (in != NULL) {
        assert_true(fgets(text, sizeof text, in) != NULL || text[0] == '\0');
        fclose(in);
    }
    return text;
}

static void a_directory_appears_whole_or_not_at_all(void **state)
{
    const char *path = in_folder(state, "a");
    ot__staging staging;

    assert_int_equal(ot__staging_open(&staging, path), OT_OK);
    assert_int_equal(put_text(staging.place, "one"), OT_OK);
    assert_false(ot__path_exists(path));
    ot__staging_close(&staging);
    assert_int_equal(count_entries(*state), 0);
    assert_int_equal(make(path, "one", false), OT_OK);
    assert_string_equal(text_in(path), "one");
    assert_int_equal(count_entries(*state), 1);
}

static void what_is_there_is_replaced_only_when_that_is_wanted(void **state)
{
    const char *path = in_folder(state, "a"), *empty = in_folder(state, "b/");

    assert_int_equal(make(path, "one", false), OT_OK);
    assert_int_equal(make(path, "two", false), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "a: exists already, and is not replaced"));
    assert_string_equal(text_in(path), "one");
    assert_int_equal(make(path, "two", true), OT_OK);
    assert_string_equal(text_in(path), "two");
    assert_int_equal(mkdir(empty, 0777), 0);
    assert_int_equal(make(empty, "three", false), OT_OK); // an empty one is nobody's
    assert_int_equal(count_entries(*state), 2);
    assert_int_equal(make(in_folder(state, "none/a"), "one", false), OT_ERR_IO);
    assert_int_equal(make(in_folder(state, ".."), "one", false), OT_ERR_INVALID);
}

static void where_names_cannot_be_exchanged_the_old_one_is_put_aside(void **state)
{
    const char *path = in_folder(state, "a");

    assert_int_equal(make(path, "one", false), OT_OK);
    ot__file_no_exchange(true);
    assert_int_equal(make(path, "two", true), OT_OK);
    ot__file_no_exchange(false);
    assert_string_equal(text_in(path), "two");
    assert_int_equal(count_entries(*state), 1);
}

typedef struct killing {
    const char *path;
    int64_t n;
    bool has_no_exchange;
} killing;

static int make_and_be_killed(void *context)
{
    const killing *k = context;

    ot__file_no_exchange(k->has_no_exchange);
    ot__file_fault_after(k->n, OT_FILE_KILL);
    return make(k->path, "two", true) == OT_OK ? 0 : 1;
}

// Wherever it is killed, one of the two is there, whole; and nothing stays of what was killed.
static void a_kill_leaves_the_old_or_the_new_one(void **state)
{
    char path[PATH_LENGTH_MAX];

    skip_under_an_emulator();
    snprintf(path, sizeof path, "%s/a", (const char *)*state);
    for (int has_no_exchange = 0; has_no_exchange < 2; has_no_exchange++) {
        killing k = {.path = path, .has_no_exchange = has_no_exchange != 0};
        int result = -1;

        for (; result != 0; k.n++) {
            char *old;

            remove_below(path);
            assert_int_equal(make(path, "one", false), OT_OK);
            result = in_child(make_and_be_killed, &k);
            assert_true(result == 0 || result == -1);
            old = ot__path_exists(path) ? NULL : ot__staging_find_old(path);
            assert_true(old != NULL || ot__path_exists(path));
            if (strcmp(text_in(old != NULL ? old : path), "one") != 0)
                assert_string_equal(text_in(path), "two");
            ot__free(old);
            ot__staging_sweep(*state);
            assert_int_equal(make(path, "three", true), OT_OK);
            assert_string_equal(text_in(path), "three");
            assert_int_equal(count_entries(*state), 1);
        }
        assert_true(k.n > 10);
    }
}

// Each failure leaves one of the two too, and is told, but for what is only left over.
static void a_failure_leaves_the_old_or_the_new_one(void **state)
{
    static const ot__file_fault faults[] = {OT_FILE_FAIL, OT_FILE_FULL};
    const char *path = in_folder(state, "a");

    for (size_t f = 0; f < OT_COUNT(faults); f++) {
        bool was_failed = true;

        for (int n = 0; was_failed; n++) {
            ot_status st;

            ot__file_fault_after(-1, OT_FILE_FAIL);
            assert_int_equal(make(path, "one", true), OT_OK);
            ot__file_fault_after(n, faults[f]);
            st = make(path, "two", true);
            was_failed = ot__file_fault_after(-1, OT_FILE_FAIL) > n;
            assert_true(st == OT_OK || st == OT_ERR_IO);
            assert_true(strcmp(text_in(path), "two") == 0 ||
                        (st != OT_OK && strcmp(text_in(path), "one") == 0));
            ot__staging_sweep(*state);
        }
    }
}

// What somebody is still writing is not swept.
static void what_is_being_made_is_no_leftover(void **state)
{
    ot__staging staging;

    assert_int_equal(ot__staging_open(&staging, in_folder(state, "a")), OT_OK);
    ot__staging_sweep(*state);
    assert_int_equal(put_text(staging.place, "one"), OT_OK);
    assert_int_equal(ot__staging_publish(&staging, false, NULL), OT_OK);
    ot__staging_close(&staging);
    assert_true(ot__directory_remove(in_folder(state, "a"), NULL));
    assert_int_equal(count_entries(*state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_directory_appears_whole_or_not_at_all),
        TEST_IN_FOLDER(what_is_there_is_replaced_only_when_that_is_wanted),
        TEST_IN_FOLDER(where_names_cannot_be_exchanged_the_old_one_is_put_aside),
        TEST_IN_FOLDER(a_kill_leaves_the_old_or_the_new_one),
        TEST_IN_FOLDER(a_failure_leaves_the_old_or_the_new_one),
        TEST_IN_FOLDER(what_is_being_made_is_no_leftover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
