// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "forked.h"

enum { N = 1000, CALLS_MAX = 64 };

typedef struct record {
    unsigned char times[N];
    _Atomic int n_calls;
    int64_t first[CALLS_MAX], last[CALLS_MAX];
} record;

static void mark(void *context, int64_t first, int64_t last)
{
    record *r = context;
    const int call = r->n_calls++;

    r->first[call] = first;
    r->last[call] = last;
    for (int64_t i = first; i < last; i++)
        r->times[i]++;
}

static void every_index_is_visited_once_whatever_the_threads(void **state)
{
    const int before = ot__parallel_max();

    (void)state;
    for (int n_threads = 1; n_threads <= 7; n_threads++)
        for (int64_t count = 0; count <= N; count += count < 20 ? 1 : 245) {
            record r = {0};

            ot__parallel_set(n_threads);
            ot__parallel_for(count, 1, mark, &r);
            assert_true(r.n_calls <= OT_MIN(n_threads, count));
            for (int64_t i = 0; i < N; i++)
                assert_int_equal(r.times[i], i < count);
        }
    ot__parallel_set(before);
}

static void chunks_are_as_long_as_asked_for_and_nearly_equal(void **state)
{
    const int before = ot__parallel_max();
    record r = {0};

    (void)state;
    ot__parallel_set(4);
    ot__parallel_for(100, 40, mark, &r);
    assert_true(r.n_calls <= 2);
    for (int i = 0; i < r.n_calls; i++)
        assert_true(r.last[i] - r.first[i] >= 40);
    memset(&r, 0, sizeof(r));
    ot__parallel_for(39, 40, mark, &r);
    assert_int_equal(r.n_calls, 1);
    memset(&r, 0, sizeof(r));
    ot__parallel_for(10, 1, mark, &r);
    for (int i = 0; i < r.n_calls; i++)
        assert_in_range(r.last[i] - r.first[i], 10 / r.n_calls, 10 / r.n_calls + 1);
    ot__parallel_set(before);
}

static void the_number_of_threads_is_what_was_set(void **state)
{
    const int before = ot__parallel_max();

    (void)state;
    assert_true(ot__parallel_hardware() >= 1);
    ot__parallel_set(3);
    assert_int_equal(ot__parallel_max(), OT_WITH_OPENMP ? 3 : 1);
    ot__parallel_set(0);
    assert_int_equal(ot__parallel_max(), ot__parallel_hardware());
    ot__parallel_set(1000000000); // a wish that cannot be met is cut down
    assert_in_range(ot__parallel_max(), 1, 100000);
    ot__parallel_set(before);
}

// ---- fork ----

enum { N_FORK_THREADS = 4, DONE = 7 };

// Every index once; what the child returns.
static int run_all(void *context)
{
    record r = {0};
    int64_t n = 0;

    (void)context;
    ot__parallel_set(N_FORK_THREADS);
    ot__parallel_for(N, 1, mark, &r);
    for (int64_t i = 0; i < N; i++)
        n += r.times[i];
    return n == N && r.n_calls == (OT_WITH_OPENMP ? N_FORK_THREADS : 1) ? DONE : 1;
}

static void a_child_computes_with_threads_of_its_own(void **state)
{
    const int before = ot__parallel_max();

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_all(NULL), DONE);
        assert_int_equal(in_child(run_all, NULL), DONE);
    }
    ot__parallel_set(before);
}

typedef struct meeting {
    _Atomic bool has_begun, may_end;
} meeting;

static void wait_inside(void *context, int64_t first, int64_t last)
{
    meeting *m = context;

    (void)first, (void)last;
    m->has_begun = true;
    while (!m->may_end)
        sched_yield();
}

static void *compute_until_told(void *context)
{
    ot__parallel_set(2);
    ot__parallel_for(2, 1, wait_inside, context);
    return NULL;
}

static void a_child_made_while_another_thread_computes_computes(void **state)
{
    meeting m = {0};
    pthread_t other;

    (void)state;
    skip_under_an_emulator();
    assert_int_equal(pthread_create(&other, NULL, compute_until_told, &m), 0);
    while (!m.has_begun)
        sched_yield();
    assert_int_equal(in_child(run_all, NULL), DONE);
    m.may_end = true;
    pthread_join(other, NULL);
}

static void *hold_for_a_while(void *context)
{
    meeting *m = context;

    ot__forks_hold();
    m->has_begun = true;
    usleep(50000); // a fork that does not wait comes in between
    m->may_end = true;
    ot__forks_release();
    return NULL;
}

static int is_released(void *context)
{
    const meeting *m = context;

    ot__forks_hold(); // nobody holds them in a new process
    ot__forks_release();
    return m->may_end ? DONE : 1;
}

static void a_fork_waits_while_another_thread_holds_forks(void **state)
{
    meeting m = {0};
    pthread_t other;

    (void)state;
    assert_int_equal(pthread_create(&other, NULL, hold_for_a_while, &m), 0);
    while (!m.has_begun)
        sched_yield();
    assert_int_equal(in_child(is_released, &m), DONE);
    pthread_join(other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_visited_once_whatever_the_threads),
        cmocka_unit_test(chunks_are_as_long_as_asked_for_and_nearly_equal),
        cmocka_unit_test(the_number_of_threads_is_what_was_set),
        cmocka_unit_test(a_child_computes_with_threads_of_its_own),
        cmocka_unit_test(a_child_made_while_another_thread_computes_computes),
        cmocka_unit_test(a_fork_waits_while_another_thread_holds_forks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
