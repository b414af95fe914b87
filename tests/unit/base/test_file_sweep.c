// SPDX-License-Identifier: Apache-2.0
// Temporary files that killed writers have left: the next writer of the same file removes them, and
// nothing else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/file_calls.h"
#include "temporary_folder.h"

static bool holds(const char *path, const char *bytes, size_t n_bytes)
{
    ot__file_map map;
    bool same;

    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    same = map.size == n_bytes && memcmp(map.data, bytes, n_bytes) == 0;
    ot__file_map_close(&map);
    return same;
}

static void temporary_files_of_others_are_not_removed(void **state)
{
    static const char *const names[] = {
        ".file.0123456789abcde.tmp",   // one digit less than ours have
        ".file.0123456789abcdef0.tmp", // one more
        ".file.0123456789ABCDEF.tmp",  ".file.0123456789abcdef.tmp2",
        "file.0123456789abcdef.tmp",   ".other.0123456789abcdef.tmp",
    };

    for (size_t i = 0; i < OT_COUNT(names); i++)
        assert_int_equal(ot__file_write(in_folder(state, names[i]), "x", 1), OT_OK);
    assert_int_equal(mkdir(in_folder(state, ".file.fedcba9876543210.tmp"), 0700), 0);
    assert_int_equal(ot__file_write(in_folder(state, ".file.0123456789abcdef.tmp"), "x", 1), OT_OK);
    assert_int_equal(ot__file_write(in_folder(state, "file"), "x", 1), OT_OK);
    assert_false(ot__path_exists(in_folder(state, ".file.0123456789abcdef.tmp")));
    for (size_t i = 0; i < OT_COUNT(names); i++)
        assert_true(ot__path_exists(in_folder(state, names[i])));
    assert_int_equal(count_entries(*state), 2 + (int)OT_COUNT(names));
}

static void a_link_in_the_name_of_a_temporary_file_harms_nobody(void **state)
{
    const char *victim = in_folder(state, "victim");

    assert_int_equal(ot__file_write(victim, "abc", 3), OT_OK);
    assert_int_equal(symlink("victim", in_folder(state, ".file.0123456789abcdef.tmp")), 0);
    assert_int_equal(ot__file_write(in_folder(state, "file"), "x", 1), OT_OK);
    assert_true(holds(victim, "abc", 3));
}

// The writer is another process, which lives on until it is told to commit.
static void the_temporary_file_of_a_living_process_stays(void **state)
{
    const char *path = in_folder(state, "file");
    int to_child[2], to_parent[2], status;
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(to_parent), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ot__file_writer *w;

        if (ot__file_writer_open(&w, path) != OT_OK ||
            ot__file_writer_write(w, "theirs", 6) != OT_OK || write(to_parent[1], "o", 1) != 1 ||
            read(to_child[0], &byte, 1) != 1)
            _exit(1);
        _exit(ot__file_writer_commit(w) == OT_OK ? 0 : 2);
    }
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_int_equal(ot__file_write(path, "ours", 4), OT_OK);
    assert_int_equal(count_entries(*state), 2);
    assert_int_equal(write(to_child[1], "c", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(holds(path, "theirs", 6));
    assert_int_equal(count_entries(*state), 1);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
}

static void a_temporary_file_that_cannot_be_removed_does_not_matter(void **state)
{
    const char *left = in_folder(state, ".file.0123456789abcdef.tmp");
    const char *path = in_folder(state, "file");
    int64_t n_calls;

    assert_int_equal(ot__file_write(path, "old", 3), OT_OK);
    ot__file_fault_after(-1, OT_FILE_FAIL);
    assert_int_equal(ot__file_write(path, "old", 3), OT_OK);
    n_calls = ot__file_fault_after(-1, OT_FILE_FAIL);
    assert_int_equal(ot__file_write(left, "x", 1), OT_OK);
    ot__file_fault_after(n_calls, OT_FILE_FAIL); // the removal comes last
    assert_int_equal(ot__file_write(path, "new", 3), OT_OK);
    assert_int_equal(ot__file_fault_after(-1, OT_FILE_FAIL), n_calls + 1);
    assert_true(holds(path, "new", 3));
    assert_true(ot__path_exists(left));
    assert_int_equal(ot__file_write(path, "new", 3), OT_OK);
    assert_false(ot__path_exists(left));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(temporary_files_of_others_are_not_removed),
        TEST_IN_FOLDER(a_link_in_the_name_of_a_temporary_file_harms_nobody),
        TEST_IN_FOLDER(the_temporary_file_of_a_living_process_stays),
        TEST_IN_FOLDER(a_temporary_file_that_cannot_be_removed_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
