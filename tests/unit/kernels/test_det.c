// SPDX-License-Identifier: Apache-2.0
// Determinants and their gradients by the code of every instruction set this processor has, with
// one to three threads, against the reference in f64: batches around the lanes, matrices without an
// inverse or nearly so, elements that are not finite.
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ELEMENTS = 1 << 18, N_THREADS = 3 };
static const float untouched = 1234.5F;
static const double tolerance = 1e-6; // of the greatest element: f64, rounded once
static float *x32, *y32, *dx32, *dy32, *again;
static double *x64, *y64, *dx64, *dy64;

static int set_up(void **state)
{
    float **const narrow[] = {&x32, &y32, &dx32, &dy32, &again};
    double **const wide[] = {&x64, &y64, &dx64, &dy64};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(narrow); i++)
        if ((*narrow[i] = malloc((MOST_ELEMENTS + 1) * sizeof(float))) == NULL)
            return -1;
    for (size_t i = 0; i < OT_COUNT(wide); i++)
        if ((*wide[i] = malloc((MOST_ELEMENTS + 1) * sizeof(double))) == NULL)
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    float *const narrow[] = {x32, y32, dx32, dy32, again};
    double *const wide[] = {x64, y64, dx64, dy64};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(narrow); i++)
        free(narrow[i]);
    for (size_t i = 0; i < OT_COUNT(wide); i++)
        free(wide[i]);
    return 0;
}

static float next_number(void)
{
    static uint32_t seed = 1;

    seed = seed * 1664525U + 1013904223U;
    return (float)(int32_t)(seed >> 8) / (1 << 23) - 1;
}

// Of determinants that are neither very large nor very small.
static void fill_matrices(int64_t batch, int64_t n)
{
    const float scale = sqrtf(3 * 2.7182818F / (float)n);

    assert_true(batch * n * n <= MOST_ELEMENTS);
    for (int64_t i = 0; i < batch * n * n; i++)
        x32[i] = scale * next_number();
    for (int64_t i = 0; i < batch; i++)
        dy32[i] = next_number();
}

static void assert_near(const float *y, const double *want, int64_t n)
{
    double greatest = 0;

    for (int64_t i = 0; i < n; i++)
        greatest = fmax(greatest, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (isfinite(greatest) && isfinite(want[i]))
            assert_true(fabs((double)y[i] - want[i]) <= tolerance * greatest);
        else
            assert_int_equal(isfinite(y[i]) != 0, isfinite((float)want[i]) != 0);
    assert_true(y[n] == untouched);
}

static void run_simd(int64_t batch, int64_t n, int n_parts, void *scratch)
{
    y32[batch] = dx32[batch * n * n] = untouched;
    ot__simd_det(y32, x32, batch, n, n_parts, scratch);
    ot__simd_det_grad(dx32, dy32, x32, batch, n, n_parts, scratch);
}

// Of each matrix alone: a lane has the bits of any other.
static void check_lanes(int64_t batch, int64_t n, void *scratch)
{
    for (int64_t m = 0; m < batch; m++) {
        float y;

        ot__simd_det(&y, x32 + m * n * n, 1, n, 1, scratch);
        assert_memory_equal(&y, y32 + m, sizeof y);
        ot__simd_det_grad(again, dy32 + m, x32 + m * n * n, 1, n, 1, scratch);
        assert_memory_equal(again, dx32 + m * n * n, (size_t)(n * n) * sizeof(float));
    }
}

static void check_dets(int64_t batch, int64_t n)
{
    void *scratch = malloc(OT_MAX(ot__simd_det_bytes(n, N_THREADS), ot__ref_det_bytes(n, 1)));

    assert_non_null(scratch);
    for (int64_t i = 0; i < batch * n * n; i++)
        x64[i] = x32[i];
    for (int64_t i = 0; i < batch; i++)
        dy64[i] = dy32[i];
    ot__ref_det_f64(y64, x64, batch, n, 1, scratch);
    ot__ref_det_grad_f64(dx64, dy64, x64, batch, n, 1, scratch);
    for (int isa = OT__ISA_BASE; isa <= (int)OT__ISA_LAST; isa++) {
        ot__isa_limit((ot__isa)isa);
        for (int threads = 1; threads <= N_THREADS; threads++) {
            ot__parallel_set(threads);
            run_simd(batch, n, threads, scratch);
            for (int64_t m = 0; m < batch; m++) {
                const float next = dx32[(m + 1) * n * n], next_y = y32[m + 1];

                y32[m + 1] = dx32[(m + 1) * n * n] = untouched;
                assert_near(y32 + m, y64 + m, 1);
                assert_near(dx32 + m * n * n, dx64 + m * n * n, n * n);
                y32[m + 1] = next_y;
                dx32[(m + 1) * n * n] = next;
            }
        }
        check_lanes(batch, n, scratch);
    }
    ot__isa_limit(OT__ISA_LAST);
    ot__parallel_set(0);
    free(scratch);
}

static void matrices_of_every_size(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 127, 128};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(sizes); i++) {
        const int64_t n = sizes[i];

        for (int64_t batch = 1; batch <= (n < 64 ? 19 : 3); batch += n < 9 ? 1 : 5) {
            fill_matrices(batch, n);
            check_dets(batch, n);
        }
    }
}

// Row `to` of a matrix becomes factor times row `from`.
static void repeat_row(int64_t matrix, int64_t n, int64_t to, int64_t from, float factor)
{
    for (int64_t j = 0; j < n; j++)
        x32[(matrix * n + to) * n + j] = factor * x32[(matrix * n + from) * n + j];
}

static void matrices_without_inverse_between_others(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 12; n++) {
        const int64_t batch = 21;

        fill_matrices(batch, n);
        repeat_row(1, n, n - 1, 0, 1); // of rank n - 1
        repeat_row(2, n, 0, n - 1, -2);
        repeat_row(3, n, 0, 1, 0);
        for (int64_t to = 1; to < n; to++) // of rank 1
            repeat_row(9, n, to, 0, (float)(1 << to));
        for (int64_t to = 0; to < n; to++) // zeros
            repeat_row(14, n, to, 0, 0);
        check_dets(batch, n);
    }
}

// Not one row but for rounding: what is left is small, and its gradient is that of rank n - 1.
static void matrices_nearly_without_inverse(void **state)
{
    (void)state;
    for (int64_t n = 3; n <= 16; n++) {
        fill_matrices(11, n);
        for (int64_t m = 0; m < 11; m++)
            repeat_row(m, n, m % n, (m + 1) % n, 1.0F / 3);
        check_dets(11, n);
    }
}

static void elements_that_are_not_finite_spoil_their_matrix_alone(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 9; n++) {
        fill_matrices(9, n);
        x32[0] = NAN;
        x32[3 * n * n + n * n / 2] = INFINITY;
        x32[5 * n * n - 1] = -INFINITY;
        for (int64_t i = 0; i < n * n; i++)
            x32[6 * n * n + i] = i == n - 1 ? NAN : 0;
        check_dets(9, n);
    }
}

static void small_whole_numbers_are_exact(void **state)
{
    static const float matrices[] = {1, 2, 3, 2, 4, 6, 3, 6, 9, 0, 2, 1, 1, 0, 3, 2, 1, 0};
    static const float cofactors[] = {-3, 6, 1, 1, -2, 4, 6, 1, -2};
    uint8_t scratch[1 << 13];

    (void)state;
    assert_true(ot__simd_det_bytes(3, 1) <= sizeof scratch);
    ot__simd_det(y32, matrices, 2, 3, 1, scratch);
    assert_true(y32[0] == 0 && y32[1] == 13);
    dy32[0] = dy32[1] = 1;
    ot__simd_det_grad(dx32, dy32, matrices, 2, 3, 1, scratch);
    for (int i = 0; i < 9; i++) {
        assert_true(dx32[i] == 0);
        assert_true(fabsf(dx32[9 + i] - cofactors[i]) <= 1e-6F);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_every_size),
        cmocka_unit_test(matrices_without_inverse_between_others),
        cmocka_unit_test(matrices_nearly_without_inverse),
        cmocka_unit_test(elements_that_are_not_finite_spoil_their_matrix_alone),
        cmocka_unit_test(small_whole_numbers_are_exact),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
