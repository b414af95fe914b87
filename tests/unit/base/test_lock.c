// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/base.h"
#include "temporary_folder.h"

static void who_comes_second_is_told_who_is_there(void **state)
{
    const char *path = in_folder(state, "lock");
    ot__lock first, second;
    char expected[64];

    assert_int_equal(ot__lock_take(path, &first), OT_OK);
    assert_int_equal(ot__lock_take(path, &second), OT_ERR_STATE);
    snprintf(expected, sizeof expected, "lock: locked by process %ld on ", (long)getpid());
    assert_non_null(strstr(ot_error_message(), expected));
    ot__lock_leave(&second); // has nothing
    ot__lock_leave(&first);
    assert_int_equal(count_entries(*state), 0);
    assert_int_equal(ot__lock_take(path, &second), OT_OK);
    ot__lock_leave(&second);
    ot__lock_leave(&second);
}

static void the_death_of_the_owner_releases_it(void **state)
{
    const char *path = in_folder(state, "lock");
    int to_parent[2], status;
    ot__lock lock;
    pid_t child;
    char byte;

    assert_int_equal(pipe(to_parent), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (ot__lock_take(path, &lock) != OT_OK || write(to_parent[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_int_equal(ot__lock_take(path, &lock), OT_ERR_STATE);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(ot__lock_take(path, &lock), OT_OK); // the file it has left does not matter
    ot__lock_leave(&lock);
    close(to_parent[0]);
    close(to_parent[1]);
}

static void where_no_file_can_be_made_there_is_no_lock(void **state)
{
    ot__lock lock;

    assert_int_equal(ot__lock_take(in_folder(state, "none/lock"), &lock), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "none/lock: cannot be opened"));
    ot__lock_leave(&lock);
}

static void what_a_link_leads_to_is_not_touched(void **state)
{
    const char *file = in_folder(state, "precious"), *path = in_folder(state, "lock");
    ot__file_map map;
    ot__lock lock;

    assert_int_equal(ot__file_write(file, "words", 5), OT_OK);
    assert_int_equal(symlink("precious", path), 0);
    assert_int_equal(ot__lock_take(path, &lock), OT_ERR_IO);
    assert_int_equal(ot__file_map_open(&map, file), OT_OK);
    assert_int_equal(map.size, 5);
    ot__file_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(who_comes_second_is_told_who_is_there),
        TEST_IN_FOLDER(the_death_of_the_owner_releases_it),
        TEST_IN_FOLDER(what_a_link_leads_to_is_not_touched),
        TEST_IN_FOLDER(where_no_file_can_be_made_there_is_no_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
