// SPDX-License-Identifier: Apache-2.0
// Which transport is taken; jobs of MPI themselves are in tests/mpi.
#include "unit/dist/ranks.h"

static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
                                        "PMIX_RANK"};

static int forget_launchers(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(variables); i++)
        unsetenv(variables[i]);
    setenv("OT_COMM_PLUGIN", "/nowhere/plugin.so", 1);
    return 0;
}

static void alone_it_is_this_process(void **state)
{
    ot_comm *comm;

    (void)state;
    assert_int_equal(ot_comm_open("auto", NULL, &comm), OT_OK);
    assert_int_equal(ot_comm_world_size(comm), 1);
    ot_comm_destroy(comm);
}

static void a_job_of_one_process_is_alone(void **state)
{
    ot_comm *comm;

    (void)state;
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    setenv("PMIX_RANK", "0", 1);
    assert_int_equal(ot_comm_open("auto", NULL, &comm), OT_OK);
    ot_comm_destroy(comm);
}

static void numbers_that_are_none_say_nothing(void **state)
{
    ot_comm *comm;

    (void)state;
    setenv("PMI_SIZE", "many", 1);
    setenv("MV2_COMM_WORLD_SIZE", "0", 1);
    assert_int_equal(ot_comm_open("auto", NULL, &comm), OT_OK);
    ot_comm_destroy(comm);
}

static void several_processes_without_a_plugin_do_not_start(void **state)
{
    ot_comm *comm;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(variables); i++) {
        forget_launchers(state);
        setenv(variables[i], "3", 1);
        assert_int_equal(ot_comm_open("auto", NULL, &comm), OT_ERR_NOT_FOUND);
        assert_null(comm);
        assert_non_null(strstr(ot_error_message(), variables[i]));
        assert_non_null(strstr(ot_error_message(), "/nowhere/plugin.so"));
        assert_non_null(strstr(ot_error_message(), "OT_COMM_PLUGIN"));
    }
}

static void mpi_needs_the_plugin_also_alone(void **state)
{
    ot_comm *comm;

    (void)state;
    assert_int_equal(ot_comm_open("mpi", NULL, &comm), OT_ERR_NOT_FOUND);
    assert_non_null(strstr(ot_error_message(), "'mpi' need"));
}

static void what_is_no_plugin_is_refused(void **state)
{
    ot_comm *comm;

    (void)state;
    setenv("OT_COMM_PLUGIN", "libz.so.1", 1);
    assert_int_equal(ot_comm_open("mpi", NULL, &comm), OT_ERR_UNSUPPORTED);
    assert_string_equal(ot_error_message(), "libz.so.1: is no plugin for MPI");
}

static void communicators_of_the_program_are_those_of_mpi(void **state)
{
    const int number = 0;
    ot_comm_options options = OT_COMM_OPTIONS_INIT;
    ot_comm *comm;

    (void)state;
    options.mpi_comm = &number;
    assert_int_equal(ot_comm_open("self", &options, &comm), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "mpi_comm is given"));
    setenv("OT_COMM_PLUGIN", "libz.so.1", 1);
    assert_int_equal(ot_comm_open("mpi", &options, &comm), OT_ERR_UNSUPPORTED);
}

static void unknown_kinds_are_refused(void **state)
{
    ot_comm *comm;

    (void)state;
    assert_int_equal(ot_comm_open("gloo", NULL, &comm), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "'gloo', expected 'auto', 'self' or 'mpi'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(alone_it_is_this_process, forget_launchers),
        cmocka_unit_test_setup(a_job_of_one_process_is_alone, forget_launchers),
        cmocka_unit_test_setup(numbers_that_are_none_say_nothing, forget_launchers),
        cmocka_unit_test_setup(several_processes_without_a_plugin_do_not_start, forget_launchers),
        cmocka_unit_test_setup(mpi_needs_the_plugin_also_alone, forget_launchers),
        cmocka_unit_test_setup(what_is_no_plugin_is_refused, forget_launchers),
        cmocka_unit_test_setup(communicators_of_the_program_are_those_of_mpi, forget_launchers),
        cmocka_unit_test_setup(unknown_kinds_are_refused, forget_launchers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
