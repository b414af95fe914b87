// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>

#include "power_cut.h"

enum { SIZE = 5000 };
static char old_text[SIZE], new_text[SIZE];

static bool holds(const char *path, const char *text)
{
    FILE *file = fopen(path, "rb");
    char found[SIZE + 1];
    const bool same =
        file != NULL && fread(found, 1, SIZE + 1, file) == SIZE && memcmp(found, text, SIZE) == 0;

    if (file != NULL)
        fclose(file);
    return same;
}

static void put_old(const char *path)
{
    memset(old_text, 'o', SIZE);
    memset(new_text, 'n', SIZE);
    ot__file_fault_after(-1, OT_FILE_FAIL);
    assert_int_equal(ot__file_write(path, old_text, SIZE), OT_OK);
}

// ---- faults ----

static void *write_in_another_thread(void *path)
{
    ot_status *st = ot__alloc(sizeof *st);

    assert_int_equal(ot__file_fault_after(-1, OT_FILE_FAIL), 0); // those of others do not count
    *st = ot__file_write(path, new_text, SIZE);
    return st;
}

static void a_fault_hits_the_thread_that_has_set_it(void **state)
{
    const char *path = in_folder(state, "file");
    pthread_t thread;
    void *st;

    put_old(path);
    ot__file_fault_after(0, OT_FILE_FAIL);
    assert_int_equal(
        pthread_create(&thread, NULL, write_in_another_thread, (void *)(uintptr_t)path), 0);
    pthread_join(thread, &st);
    assert_int_equal(*(ot_status *)st, OT_OK);
    ot__free(st);
    assert_true(holds(path, new_text));
    assert_int_equal(ot__file_write(path, old_text, SIZE), OT_ERR_IO);
    assert_true(holds(path, new_text));
    ot__file_fault_after(-1, OT_FILE_FAIL);
}

static void a_fault_can_be_that_of_one_kind_of_call(void **state)
{
    static const struct {
        ot__file_call call;
        int n;
        bool is_new;
    } cases[] = {{OT_FILE_CALL_WRITE, 0, false},
                 {OT_FILE_CALL_SYNC, 0, false},
                 {OT_FILE_CALL_RENAME, 0, false},
                 {OT_FILE_CALL_SYNC, 1, true}}; // that of the folder
    const char *path = in_folder(state, "file");

    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        put_old(path);
        ot__file_fault_at(cases[i].call, cases[i].n, OT_FILE_FAIL);
        assert_int_equal(ot__file_write(path, new_text, SIZE), OT_ERR_IO);
        assert_non_null(strstr(ot_error_message(), strerror(EIO)));
        assert_int_equal(ot__file_fault_after(-1, OT_FILE_FAIL), cases[i].n + 1);
        assert_true(holds(path, cases[i].is_new ? new_text : old_text));
        assert_int_equal(count_entries(*state), 1);
    }
}

// Wherever a writer is when room runs out, nothing is left of it, and what needs none goes on.
static void without_room_the_old_file_stays(void **state)
{
    static const struct {
        ot__file_fault fault;
        int error, n_last; // calls after which there is room for all
    } cases[] = {{OT_FILE_FULL, ENOSPC, 3}, {OT_FILE_TOO_LARGE, EFBIG, 3}};
    const char *path = in_folder(state, "file");

    for (size_t i = 0; i < OT_COUNT(cases); i++)
        for (int n = 0; n <= cases[i].n_last; n++) {
            const ot_status expected = n < cases[i].n_last ? OT_ERR_IO : OT_OK;

            put_old(path);
            ot__file_fault_after(n, cases[i].fault);
            assert_int_equal(ot__file_write(path, new_text, SIZE), expected);
            if (expected != OT_OK) {
                assert_non_null(strstr(ot_error_message(), strerror(cases[i].error)));
                assert_int_equal(ot__file_write(path, new_text, SIZE), OT_ERR_IO); // still none
            }
            assert_true(holds(path, expected == OT_OK ? new_text : old_text));
            assert_int_equal(count_entries(*state), 1);
        }
    ot__file_fault_after(-1, OT_FILE_FAIL);
}

static void the_first_write_without_room_takes_half(void **state)
{
    const char *path = in_folder(state, "file");
    ot__file_writer *w;
    struct stat info;

    ot__file_fault_after(-1, OT_FILE_FAIL);
    assert_int_equal(ot__file_append_open(&w, path, false), OT_OK);
    ot__file_fault_at(OT_FILE_CALL_WRITE, 1, OT_FILE_FULL);
    assert_int_equal(ot__file_writer_write(w, "abcd", 4), OT_OK);
    assert_int_equal(ot__file_writer_write(w, "efgh", 4), OT_ERR_IO);
    ot__file_fault_after(-1, OT_FILE_FAIL);
    ot__file_writer_abort(w);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 6);
}

// ---- the log ----

static void the_log_has_every_call_that_has_changed_something(void **state)
{
    static const ot__file_call expected[] = {
        OT_FILE_CALL_OPEN, OT_FILE_CALL_CHMOD, OT_FILE_CALL_WRITE,  OT_FILE_CALL_WRITE,
        OT_FILE_CALL_SYNC, OT_FILE_CALL_CLOSE, OT_FILE_CALL_RENAME, OT_FILE_CALL_OPEN,
        OT_FILE_CALL_SYNC, OT_FILE_CALL_CLOSE};
    const char *path = in_folder(state, "file");
    cut_log log = {.n = 0};

    put_old(path);
    ot__file_fault_at(OT_FILE_CALL_WRITE, 0, OT_FILE_SHORT);
    ot__file_log_to(cut_record, &log);
    assert_int_equal(ot__file_write(path, new_text, SIZE), OT_OK);
    ot__file_log_to(NULL, NULL);
    ot__file_fault_after(-1, OT_FILE_FAIL);
    assert_int_equal(log.n, OT_COUNT(expected));
    for (size_t i = 0; i < OT_COUNT(expected); i++)
        assert_int_equal(log.events[i].call, expected[i]);
    assert_int_equal(log.events[2].n_bytes, 1);
    assert_int_equal(log.events[3].n_bytes, SIZE - 1);
    assert_int_equal(log.events[2].fd, log.events[0].fd);
    assert_string_equal(log.events[6].path, log.events[0].path);
    assert_string_equal(log.events[6].to, path);
    assert_string_equal(log.events[7].path, *state);
    cut_forget(&log);
}

// With a rename before its bytes are on the disk this would find an empty file.
static void a_power_cut_leaves_the_old_or_the_new_file(void **state)
{
    const char *path = in_folder(state, "at/file"), *after = in_folder(state, "after");
    const char *found = in_folder(state, "after/file");
    char *folder = ot__path_folder(path);
    cut_log log = {.n = 0};
    int n_before, n_new = 0;

    assert_int_equal(ot__path_make_folder(folder), OT_OK);
    ot__file_log_to(cut_record, &log);
    put_old(path);
    n_before = log.n;
    assert_int_equal(ot__file_write(path, new_text, SIZE), OT_OK);
    ot__file_log_to(NULL, NULL);
    for (int n = n_before; n <= log.n; n++)
        for (int i = 0; i < 4; i++) {
            cut_build(&log, n, (cut_kept){.names = (i & 1) != 0, .bytes = (i & 2) != 0}, folder,
                      after);
            assert_true(holds(found, old_text) || holds(found, new_text));
            n_new += holds(found, new_text);
        }
    assert_true(holds(found, new_text)); // what was committed stays
    assert_true(n_new > 4);
    cut_forget(&log);
    ot__free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_fault_hits_the_thread_that_has_set_it),
        TEST_IN_FOLDER(a_fault_can_be_that_of_one_kind_of_call),
        TEST_IN_FOLDER(without_room_the_old_file_stays),
        TEST_IN_FOLDER(the_first_write_without_room_takes_half),
        TEST_IN_FOLDER(the_log_has_every_call_that_has_changed_something),
        TEST_IN_FOLDER(a_power_cut_leaves_the_old_or_the_new_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
