// SPDX-License-Identifier: Apache-2.0
// Slices added up where indices along an axis name them, by the code of every instruction set this
// processor has, with one to three threads, against the sums of each element in f64.
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ELEMENTS = 1 << 17, MOST_INDICES = 300, GUARD = 32, N_THREADS = 3 };
static const double untouched = 1234.5;
static double *want, *y64, *u64;
static float *y32, *u32;

static int set_up(void **state)
{
    const size_t n = MOST_ELEMENTS + 2 * GUARD;

    (void)state;
    want = malloc(n * sizeof(*want));
    y64 = malloc(n * sizeof(*y64));
    u64 = malloc(n * sizeof(*u64));
    y32 = malloc(n * sizeof(*y32));
    u32 = malloc(n * sizeof(*u32));
    if (want == NULL || y64 == NULL || u64 == NULL || y32 == NULL || u32 == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        u32[i] = (float)(int)(i * 2654435761U >> 16 & 1023) / 8 - 64; // sums are exact
        u64[i] = u32[i];
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(want);
    free(y64);
    free(u64);
    free(y32);
    free(u32);
    return 0;
}

// Elements around y stay as they are, and those of y as `want` has them.
static void check_elements(int64_t count)
{
    for (int64_t i = 0; i < count + 2 * GUARD; i++) {
        const double expected = i < GUARD || i >= GUARD + count ? untouched : want[i - GUARD];

        assert_true(y32[i] == (float)expected);
        assert_true(y64[i] == expected);
    }
}

static void fill_untouched(int64_t count)
{
    for (int64_t i = 0; i < count + 2 * GUARD; i++) {
        y64[i] = untouched;
        y32[i] = (float)untouched;
    }
}

static void check_sums(const int64_t *indices, int64_t n, int64_t lines, int64_t extent,
                       int64_t inner, bool adds)
{
    const int64_t count = lines * extent * inner;
    ot__index_run runs[MOST_INDICES];
    ot__index_sum s = {.adds = adds};

    assert_true(n <= MOST_INDICES && count <= MOST_ELEMENTS && lines * n * inner <= MOST_ELEMENTS);
    for (int64_t i = 0; i < count; i++)
        want[i] = adds ? untouched : 0;
    for (int64_t i = 0; i < lines * n * inner; i++) {
        const int64_t at = indices[i / inner % n], line = i / (n * inner);

        want[(line * extent + at + (at < 0 ? extent : 0)) * inner + i % inner] += u64[i];
    }
    assert_int_equal(ot__index_sum_runs(&s, runs, indices, sizeof(*indices), n, extent, inner), -1);
    for (int isa = OT__ISA_BASE; isa <= (int)OT__ISA_LAST; isa++)
        for (int threads = 1; threads <= N_THREADS; threads++) {
            ot__isa_limit((ot__isa)isa);
            ot__parallel_set(threads);
            fill_untouched(count);
            s.y = y32 + GUARD;
            s.u = u32;
            ot__index_sum_add(&s, lines, OT_F32);
            s.y = y64 + GUARD;
            s.u = u64;
            ot__index_sum_add(&s, lines, OT_F64);
            check_elements(count);
        }
    ot__isa_limit(OT__ISA_LAST);
    ot__parallel_set(0);
}

static void check_pads(ot__pad_mode mode, int64_t extent, int64_t begin, int64_t end)
{
    static const struct {
        int64_t lines, inner;
    } around[] = {{1, 1}, {3, 1}, {5, 7}, {2, 64}};
    int64_t map[MOST_INDICES];

    ot__ref_pad_map(map, extent, begin, end, mode);
    for (size_t i = 0; i < OT_COUNT(around); i++)
        for (int adds = 0; adds < 2; adds++)
            check_sums(map, extent + begin + end, around[i].lines, extent, around[i].inner,
                       adds != 0);
}

static void gradients_of_pads_are_sums(void **state)
{
    static const int64_t extents[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 65};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(extents); i++)
        for (int mode = OT__PAD_REFLECT; mode <= (int)OT__PAD_WRAP; mode++) {
            check_pads((ot__pad_mode)mode, extents[i], 2, 3);
            check_pads((ot__pad_mode)mode, extents[i], 0, 1);
            check_pads((ot__pad_mode)mode, extents[i], 40, 30); // several times around
            if (extents[i] > 3)
                check_pads((ot__pad_mode)mode, extents[i], -2, 5);
            if (extents[i] > 3)
                check_pads((ot__pad_mode)mode, extents[i], 4, -3);
        }
}

static void indices_come_in_any_order(void **state)
{
    static const int64_t mixed[] = {3, 4, 5, -1, 3, 0, 4, 5, 6, 7, 8, -9, 2};
    int64_t same[MOST_INDICES];

    (void)state;
    for (int64_t i = 0; i < MOST_INDICES; i++)
        same[i] = 5;
    for (int adds = 0; adds < 2; adds++) {
        check_sums(mixed, 13, 20, 9, 1, adds != 0);
        check_sums(mixed, 13, 20, 9, 33, adds != 0);
        check_sums(mixed, 13, 1, 10, 3, adds != 0);
        check_sums(same, MOST_INDICES, 4, 6, 5, adds != 0);
        check_sums(mixed, 0, 4, 6, 5, adds != 0); // zeros, where nothing is added
    }
}

static void threads_share_lines(void **state)
{
    int64_t map[MOST_INDICES];

    (void)state;
    ot__ref_pad_map(map, 56, 2, 2, OT__PAD_REFLECT);
    check_sums(map, 60, 1117, 56, 1, false);
    check_sums(map, 60, 17, 56, 70, true);
    ot__ref_pad_map(map, 230, 30, 40, OT__PAD_WRAP);
    check_sums(map, 300, 1, 230, 300, false); // within a line
    check_sums(map, 300, 1, 230, 301, true);
}

static void indices_out_of_range_are_found(void **state)
{
    static const int32_t indices[] = {0, 3, -4, 4, 1}, below[] = {2, -5};
    ot__index_run runs[5];
    ot__index_sum s = {0};

    (void)state;
    assert_int_equal(ot__index_sum_runs(&s, runs, indices, sizeof(*indices), 3, 4, 2), -1);
    assert_int_equal(ot__index_sum_runs(&s, runs, indices, sizeof(*indices), 5, 4, 2), 3);
    assert_int_equal(ot__index_sum_runs(&s, runs, below, sizeof(*below), 2, 4, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_pads_are_sums),
        cmocka_unit_test(indices_come_in_any_order),
        cmocka_unit_test(threads_share_lines),
        cmocka_unit_test(indices_out_of_range_are_found),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
