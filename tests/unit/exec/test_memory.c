// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/exec.h"

// Every pair of records that live at the same time has disjoint memory, unless one replaces the
// other in place; and everything lies inside the block.
static void assert_disjoint(const ot__usage *u, int n, size_t total)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(u[i].offset % 64, 0);
        assert_true(u[i].offset + u[i].n_bytes <= total);
        for (int k = 0; k < i; k++) {
            const bool in_time = u[i].first <= u[k].last && u[k].first <= u[i].last;
            const bool in_memory = u[i].offset < u[k].offset + u[k].n_bytes &&
                                   u[k].offset < u[i].offset + u[i].n_bytes;

            if (in_time && in_memory) {
                assert_int_equal(u[i].alias_of, k);
                assert_int_equal(u[i].offset, u[k].offset);
                assert_int_equal(u[i].first, u[k].last);
            }
        }
    }
}

static void records_that_never_meet_share_memory(void **state)
{
    ot__usage u[] = {{0, 1, 1000, -1, 0}, {2, 3, 1000, -1, 0}, {4, 5, 500, -1, 0}};
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 3, &total), OT_OK);
    assert_int_equal(total, 1024);
    assert_disjoint(u, 3, total);
}

static void records_alive_in_one_step_do_not_overlap(void **state)
{
    ot__usage u[] = {{0, 2, 100, -1, 0}, {1, 3, 200, -1, 0}, {2, 2, 300, -1, 0}};
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 3, &total), OT_OK);
    assert_int_equal(total, 128 + 256 + 320);
    assert_disjoint(u, 3, total);
}

static void an_alias_takes_the_memory_of_the_record_it_replaces(void **state)
{
    ot__usage u[] = {{0, 1, 640, -1, 0}, {1, 2, 640, 0, 0}, {2, 3, 640, 1, 0}};
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 3, &total), OT_OK);
    assert_int_equal(total, 640);
    assert_int_equal(u[0].offset, u[1].offset);
    assert_int_equal(u[1].offset, u[2].offset);
}

static void an_alias_to_a_record_that_lives_on_gets_its_own_memory(void **state)
{
    ot__usage u[] = {{0, 2, 640, -1, 0}, {1, 3, 640, 0, 0}};
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 2, &total), OT_OK);
    assert_int_equal(total, 1280);
    assert_int_not_equal(u[0].offset, u[1].offset);
}

static void only_one_of_two_aliases_replaces_a_record(void **state)
{
    ot__usage u[] = {{0, 1, 640, -1, 0}, {1, 2, 640, 0, 0}, {1, 2, 640, 0, 0}};
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 3, &total), OT_OK);
    assert_int_equal(total, 1280);
    assert_disjoint(u, 3, total);
}

static void an_alias_of_another_size_is_ignored(void **state)
{
    ot__usage u[] = {{0, 1, 640, -1, 0}, {1, 2, 1280, 0, 0}};
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 2, &total), OT_OK);
    assert_disjoint(u, 2, total);
    assert_int_equal(total, 1920);
}

static void a_record_goes_to_the_smallest_gap_that_holds_it(void **state)
{
    // After step 1 gaps of 1024 and 512 bytes are free; the 512-byte newcomer must leave the large
    // one to the 1024-byte newcomer.
    ot__usage u[] = {
        {0, 1, 1024, -1, 0}, {0, 4, 64, -1, 0},  {0, 1, 512, -1, 0},
        {0, 4, 64, -1, 0},   {2, 4, 512, -1, 0}, {2, 4, 1024, -1, 0},
    };
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 6, &total), OT_OK);
    assert_int_equal(total, 1024 + 512 + 128);
    assert_disjoint(u, 6, total);
}

static void nothing_needs_nothing(void **state)
{
    ot__usage u[] = {{0, 0, 0, -1, 0}};
    size_t total = 1;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 0, &total), OT_OK);
    assert_int_equal(total, 0);
    assert_int_equal(ot__memory_plan(u, 1, &total), OT_OK);
    assert_int_equal(total, 0);
}

static void sizes_beyond_the_address_space_are_refused(void **state)
{
    ot__usage u[] = {{0, 0, SIZE_MAX / 3, -1, 0}, {0, 0, SIZE_MAX / 3, -1, 0}};
    size_t total;

    (void)state;
    assert_int_equal(ot__memory_plan(u, 2, &total), OT_ERR_NO_MEMORY);
    assert_int_equal(total, 0);
    u[0].n_bytes = SIZE_MAX / 2 - 64; // rounded up, it leaves less than a block's alignment
    assert_int_equal(ot__memory_plan(u, 2, &total), OT_ERR_NO_MEMORY);
    assert_int_equal(total, 0);
}

// A linear congruential generator, so that the records are the same everywhere.
static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static void random_records_are_disjoint_and_near_the_lower_bound(void **state)
{
    enum { N = 200, STEPS = 60 };
    uint32_t seed = 1;
    double worst = 0.0;

    (void)state;
    for (int round = 0; round < 30; round++) {
        ot__usage u[N];
        size_t total, bound;

        for (int i = 0; i < N; i++) {
            const int first = (int)draw(&seed, STEPS);

            u[i] = (ot__usage){first, first + (int)draw(&seed, 12), 1 + draw(&seed, 100000), -1, 0};
            if (i > 0 && draw(&seed, 3) == 0) {
                u[i].alias_of = (int)draw(&seed, (uint32_t)i);
                u[i].first = u[u[i].alias_of].last;
                u[i].last = u[i].first + (int)draw(&seed, 12);
                u[i].n_bytes = u[u[i].alias_of].n_bytes;
            }
        }
        bound = ot__memory_lower_bound(u, N);
        assert_int_equal(ot__memory_plan(u, N, &total), OT_OK);
        assert_disjoint(u, N, total);
        assert_true(total >= bound);
        worst = OT_MAX(worst, (double)total / (double)bound);
    }
    assert_true(worst < 1.1); // 1.15 by the orders alone
}

// Activations live from forward to backward, gradients briefly: the shape of a training step.
// More records than are placed among all others.
static void very_many_records_are_disjoint_and_below_twice_the_lower_bound(void **state)
{
    enum { N = 14000, LENGTH = 40 };
    ot__usage *u = calloc(N, sizeof *u);
    uint32_t random = 1;
    size_t total, least;

    (void)state;
    assert_non_null(u);
    for (int i = 0; i < N; i++) {
        random = random * 1664525u + 1013904223u;
        u[i] =
            (ot__usage){i, i + 1 + (int)(random >> 24) % LENGTH, 64 + (random >> 16) % 6400, -1, 0};
    }
    least = ot__memory_lower_bound(u, N);
    assert_int_equal(ot__memory_plan(u, N, &total), OT_OK);
    for (int i = 0; i < N; i += LENGTH) // no lifetime reaches further than two pieces
        assert_disjoint(&u[i], OT_MIN(3 * LENGTH, N - i), total);
    assert_in_range(total, least, 2 * least);
    free(u);
}

static void a_training_step_packs_within_two_percent_of_the_lower_bound(void **state)
{
    enum { LAYERS = 30, N = 3 * LAYERS };
    ot__usage u[N];
    size_t total;

    (void)state;
    for (int l = 0; l < LAYERS; l++) {
        const size_t size = 100000 / (size_t)(1 + l % 5) + 640;
        const int back = 3 * LAYERS - 2 * l;

        u[3 * l] = (ot__usage){l, back, size, -1, 0};
        u[3 * l + 1] = (ot__usage){back - 1, back + 1, size, -1, 0};
        u[3 * l + 2] = (ot__usage){back, back, size / 3, -1, 0};
    }
    assert_int_equal(ot__memory_plan(u, N, &total), OT_OK);
    assert_disjoint(u, N, total);
    assert_true((double)total <= 1.02 * (double)ot__memory_lower_bound(u, N));
}

static void the_lower_bound_counts_a_replaced_record_once(void **state)
{
    const ot__usage u[] = {{0, 1, 640, -1, 0}, {1, 2, 640, 0, 0}, {1, 1, 64, -1, 0}};

    (void)state;
    assert_int_equal(ot__memory_lower_bound(u, 3), 704);
}

static void a_failing_allocation_is_reported_and_nothing_leaks(void **state)
{
    ot__usage u[] = {{0, 1, 100, -1, 0}, {1, 2, 100, 0, 0}};
    size_t total;

    (void)state;
    for (int64_t n = 0; n < 2; n++) { // the arena and its first block
        ot__alloc_fail_after(n);
        assert_int_equal(ot__memory_plan(u, 2, &total), OT_ERR_NO_MEMORY);
    }
    ot__alloc_fail_after(-1);
    assert_int_equal(ot__memory_plan(u, 2, &total), OT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_that_never_meet_share_memory),
        cmocka_unit_test(records_alive_in_one_step_do_not_overlap),
        cmocka_unit_test(an_alias_takes_the_memory_of_the_record_it_replaces),
        cmocka_unit_test(an_alias_to_a_record_that_lives_on_gets_its_own_memory),
        cmocka_unit_test(only_one_of_two_aliases_replaces_a_record),
        cmocka_unit_test(an_alias_of_another_size_is_ignored),
        cmocka_unit_test(a_record_goes_to_the_smallest_gap_that_holds_it),
        cmocka_unit_test(nothing_needs_nothing),
        cmocka_unit_test(sizes_beyond_the_address_space_are_refused),
        cmocka_unit_test(random_records_are_disjoint_and_near_the_lower_bound),
        cmocka_unit_test(very_many_records_are_disjoint_and_below_twice_the_lower_bound),
        cmocka_unit_test(a_training_step_packs_within_two_percent_of_the_lower_bound),
        cmocka_unit_test(the_lower_bound_counts_a_replaced_record_once),
        cmocka_unit_test(a_failing_allocation_is_reported_and_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
