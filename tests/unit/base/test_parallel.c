// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_visited_once_whatever_the_threads),
        cmocka_unit_test(chunks_are_as_long_as_asked_for_and_nearly_equal),
        cmocka_unit_test(the_number_of_threads_is_what_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
