// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "temporary_folder.h"

enum { MIB = 1 << 20 };

static const char *const job_names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_NTASKS_PER_NODE", "LOCAL_WORLD_SIZE"};

static int forget(void **state)
{
    for (size_t i = 0; i < OT_COUNT(job_names); i++)
        unsetenv(job_names[i]);
    ot_set_memory_max(0);
    ot__memory_set_machine(0);
    return temporary_folder_remove(state);
}

static int prepare(void **state)
{
    for (size_t i = 0; i < OT_COUNT(job_names); i++)
        unsetenv(job_names[i]);
    return temporary_folder_make(state);
}

static void three_quarters_of_the_machine_may_be_taken(void **state)
{
    const size_t before = ot__memory_taken();
    void *a, *b;

    (void)state;
    ot__memory_set_machine(8 * MIB + 4 * before);
    assert_int_equal(ot__memory_left(0), 6 * MIB + 2 * before);
    ot__memory_set_machine(8 * MIB);
    a = ot__alloc_aligned(4 * MIB);
    assert_non_null(a);
    assert_int_equal(ot__memory_taken(), before + 4 * MIB);
    assert_int_equal(ot__memory_left(4 * MIB), 6 * MIB);
    assert_null(ot__alloc_aligned(2 * MIB + 1));
    assert_non_null(strstr(ot_error_message(), "2097153 bytes are needed, 4194304 are taken and "
                                               "6291456 are allowed"));
    b = ot__alloc_aligned(2 * MIB);
    assert_non_null(b);
    assert_int_equal(ot__memory_left(0), 0);
    ot__free_aligned(a);
    ot__free_aligned(b);
    assert_int_equal(ot__memory_taken(), before);
}

static void a_figure_of_the_user_goes_before_the_default(void **state)
{
    (void)state;
    ot__memory_set_machine(8 * MIB);
    ot__memory_admit(7 * MIB); // of one session
    assert_int_equal(ot__memory_left(0), 7 * MIB);
    ot__memory_admit(1 * MIB);
    assert_int_equal(ot__memory_left(0), 7 * MIB);
    ot_set_memory_max(2 * MIB); // of the process
    assert_int_equal(ot__memory_left(0), 2 * MIB);
    ot_set_memory_max(OT_MEMORY_UNLIMITED);
    assert_true(ot__memory_left(0) == OT_MEMORY_UNLIMITED);
}

static void processes_of_one_job_share_the_machine(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(job_names); i++) {
        setenv(job_names[i], "4", 1);
        ot__memory_set_machine(16 * MIB);
        assert_int_equal(ot__memory_left(0), 3 * MIB);
        unsetenv(job_names[i]);
    }
    ot__memory_set_machine(16 * MIB);
    ot__memory_share(6); // as a communicator says
    assert_int_equal(ot__memory_left(0), 2 * MIB);
    ot__memory_share(1); // another, of this process alone
    assert_int_equal(ot__memory_left(0), 2 * MIB);
    for (int i = 0; i < 5; i++) { // what is no number of processes
        const char *const wrong[] = {"", "0", "-3", "2(x3)", "1000000"};

        setenv("LOCAL_WORLD_SIZE", wrong[i], 1);
        ot__memory_set_machine(16 * MIB);
        assert_int_equal(ot__memory_left(0), 12 * MIB);
    }
}

// <folder>/<path> with this text; the folders are made.
static void put(void **state, const char *path, const char *text)
{
    char folder[512];

    snprintf(folder, sizeof folder, "%s", in_folder(state, path));
    *strrchr(folder, '/') = '\0';
    assert_int_equal(ot__path_make_folder(folder), OT_OK);
    assert_int_equal(ot__file_write(in_folder(state, path), text, strlen(text)), OT_OK);
}

static size_t group_limit(void **state)
{
    char self[512], root[512];

    snprintf(self, sizeof self, "%s", in_folder(state, "self"));
    snprintf(root, sizeof root, "%s", in_folder(state, "cgroup"));
    return ot__memory_of_group(self, root);
}

static void a_group_of_version_2_is_bound_by_those_around_it(void **state)
{
    put(state, "self", "0::/a/b\n");
    assert_true(group_limit(state) == OT_MEMORY_UNLIMITED);
    put(state, "cgroup/a/b/memory.max", "max\n");
    assert_true(group_limit(state) == OT_MEMORY_UNLIMITED);
    put(state, "cgroup/a/memory.max", "5000\n");
    assert_int_equal(group_limit(state), 5000);
    put(state, "cgroup/a/b/memory.max", "7000\n");
    assert_int_equal(group_limit(state), 5000);
    put(state, "cgroup/memory.max", "3000\n"); // a container's own
    assert_int_equal(group_limit(state), 3000);
}

static void a_group_of_version_1_is_that_of_its_memory_controller(void **state)
{
    put(state, "self", "5:cpuset:/other\n4:cpu,memory,pids:/a\n0::/\n");
    put(state, "cgroup/memory/other/memory.limit_in_bytes", "1\n");
    put(state, "cgroup/memory/a/memory.limit_in_bytes", "6000\n");
    put(state, "cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(group_limit(state), 6000);
}

static void what_is_no_list_of_groups_limits_nothing(void **state)
{
    assert_true(group_limit(state) == OT_MEMORY_UNLIMITED);
    put(state, "self", "\n:\n0:\nmemory\n0::\n");
    assert_true(group_limit(state) == OT_MEMORY_UNLIMITED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(three_quarters_of_the_machine_may_be_taken),
        TEST(a_figure_of_the_user_goes_before_the_default),
        TEST(processes_of_one_job_share_the_machine),
        TEST(a_group_of_version_2_is_bound_by_those_around_it),
        TEST(a_group_of_version_1_is_that_of_its_memory_controller),
        TEST(what_is_no_list_of_groups_limits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
