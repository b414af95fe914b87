// SPDX-License-Identifier: Apache-2.0
#include "unit/dist/ranks.h"

static ot__processors on(int64_t node, uint64_t low_cores)
{
    return (ot__processors){.node = node, .cores = {low_cores}};
}

static void processors_are_divided_by_the_ranks_that_share_them(void **state)
{
    const ot__processors free_ranks[] = {on(0, 0xff), on(0, 0xff), on(0, 0xff), on(0, 0xff)};
    const ot__processors bound[] = {on(0, 0x0f), on(0, 0xf0)};
    const ot__processors chain[] = {on(0, 0x0f), on(0, 0x3c), on(0, 0xf0)};

    (void)state;
    assert_int_equal(ot__processors_threads(free_ranks, 4, 2), 2);
    assert_int_equal(ot__processors_threads(bound, 2, 1), 4);
    assert_int_equal(ot__processors_threads(chain, 3, 0), 2);
    assert_int_equal(ot__processors_threads(chain, 3, 1), 1); // shares with both
}

static void ranks_of_other_machines_take_nothing(void **state)
{
    const ot__processors places[] = {on(0, 3), on(1, 3), on(1, 3)};

    (void)state;
    assert_int_equal(ot__processors_threads(places, 3, 0), 2);
    assert_int_equal(ot__processors_threads(places, 3, 1), 1);
}

static void there_is_at_least_one_thread(void **state)
{
    const ot__processors many[] = {on(0, 3), on(0, 3), on(0, 3), on(0, 3)};
    const ot__processors unknown[] = {on(0, 0), on(0, 0)};

    (void)state;
    assert_int_equal(ot__processors_threads(many, 4, 0), 1);
    assert_true(ot__processors_are_crowded(many, 4, 0));
    assert_false(ot__processors_are_crowded(many, 2, 0));
    assert_int_equal(ot__processors_threads(unknown, 2, 1), 1);
}

static void the_last_processors_count(void **state)
{
    ot__processors places[2] = {{.node = 0}, {.node = 0}};

    (void)state;
    places[0].cores[OT_CORE_WORDS - 1] = places[1].cores[OT_CORE_WORDS - 1] = UINT64_C(3) << 62;
    assert_int_equal(ot__processors_threads(places, 1, 0), 2);
    assert_int_equal(ot__processors_threads(places, 2, 0), 1);
}

// All ranks of one process have its mask.
static void divide_this_process(ot_comm *comm, void *context)
{
    const long n_cores = *(const long *)context, n = ot_comm_world_size(comm);

    RANK_CHECK(ot_comm_threads(comm) == OT_MAX(n_cores / n, 1), "%d threads for %ld processors",
               ot_comm_threads(comm), n_cores);
}

static void threads_as_ranks_share_what_the_process_has(void **state)
{
    ot__processors here;
    long n_cores = 0;

    (void)state;
    ot__processors_here(&here);
    for (int i = 0; i < OT_CORE_WORDS * 64; i++)
        n_cores += (here.cores[i / 64] & UINT64_C(1) << i % 64) != 0;
    assert_true(n_cores >= 1 && n_cores <= sysconf(_SC_NPROCESSORS_CONF));
    for (size_t i = 0; i < OT_COUNT(rank_counts); i++)
        run_ranks(rank_counts[i], divide_this_process, &n_cores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_are_divided_by_the_ranks_that_share_them),
        cmocka_unit_test(ranks_of_other_machines_take_nothing),
        cmocka_unit_test(there_is_at_least_one_thread),
        cmocka_unit_test(the_last_processors_count),
        cmocka_unit_test(threads_as_ranks_share_what_the_process_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
