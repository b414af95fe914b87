// SPDX-License-Identifier: Apache-2.0
// Softmax and layer normalisation over rows of every instruction set this processor has, against
// the formulas in f64.
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, MOST = 300 };
static const int64_t lengths[] = {1, 2, 31, 32, 33, 100, MOST};

// Numbers that differ from place to place, in -range .. range around a centre.
static void fill(float *x, int64_t n, unsigned seed, float range, float centre)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        x[i] = ((float)(int)(seed >> 8) / 8388608.0F - 1.0F) * range + centre;
    }
}

static void check_near(float found, double expected)
{
    assert_true(fabs((double)found - expected) <= 2e-6 * (1 + fabs(expected)));
}

static double exact_log_sum(const float *x, int64_t n)
{
    double sum = 0;

    for (int64_t k = 0; k < n; k++)
        sum += exp((double)x[k] - 90);
    return log(sum) + 90;
}

static void softmax_and_its_logarithm_follow_their_formulas(void **state)
{
    static float x[ROWS * MOST], y[ROWS * MOST], z[ROWS * MOST];
    const ot__rows *rows;

    (void)state;
    for (int isa = 0; (rows = ot__rows_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < OT_COUNT(lengths); i++) {
            const int64_t n = lengths[i];

            fill(x, ROWS * n, 1, 10, 80);
            rows->softmax(&(ot__row_lines){.y = y, .x = x, .n = n}, 0, ROWS);
            rows->log_softmax(&(ot__row_lines){.y = z, .x = x, .n = n}, 0, ROWS);
            for (int64_t at = 0; at < ROWS * n; at++) {
                const double exact = (double)x[at] - exact_log_sum(x + at / n * n, n);

                check_near(y[at], exp(exact));
                assert_true(fabs((double)z[at] - exact) < 2e-5); // x is near 100
            }
        }
}

static void gradients_of_softmax_follow_their_formulas(void **state)
{
    static float dy[ROWS * MOST], y[ROWS * MOST], dx[ROWS * MOST], dz[ROWS * MOST];
    const ot__rows *rows;

    (void)state;
    for (int isa = 0; (rows = ot__rows_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < OT_COUNT(lengths); i++) {
            const int64_t n = lengths[i];

            fill(dy, ROWS * n, 2, 1, 0);
            fill(y, ROWS * n, 3, 1, -1);
            rows->softmax_grad(&(ot__row_lines){.y = dx, .x = dy, .z = y, .n = n}, 0, ROWS);
            rows->log_softmax_grad(&(ot__row_lines){.y = dz, .x = dy, .z = y, .n = n}, 0, ROWS);
            for (int64_t at = 0; at < ROWS * n; at++) {
                double sum = 0, dot = 0;

                for (int64_t k = at / n * n; k < (at / n + 1) * n; k++) {
                    sum += (double)dy[k];
                    dot += (double)dy[k] * (double)y[k];
                }
                assert_true(fabs((double)dx[at] - (double)y[at] * ((double)dy[at] - dot)) < 1e-4);
                assert_true(fabs((double)dz[at] - ((double)dy[at] - exp((double)y[at]) * sum)) <
                            1e-4);
            }
        }
}

static void layer_normalisation_gives_mean_0_and_variance_1(void **state)
{
    static float x[ROWS * MOST], y[ROWS * MOST], scale[MOST], b[MOST], mean[ROWS], inv[ROWS];
    const ot__rows *rows;

    (void)state;
    for (int64_t k = 0; k < MOST; k++) {
        scale[k] = 2;
        b[k] = 1;
    }
    fill(x, ROWS * MOST, 4, 1, 30); // far from 0, where a careless variance cancels
    for (int isa = 0; (rows = ot__rows_at(isa)) != NULL; isa++) {
        rows->layer_norm(&(ot__row_norm){.y = y,
                                         .mean = mean,
                                         .inv = inv,
                                         .x = x,
                                         .scale = scale,
                                         .b = b,
                                         .epsilon = 0,
                                         .centered = true,
                                         .columns = MOST},
                         0, ROWS);
        for (int64_t r = 0; r < ROWS; r++) {
            double sum = 0, squares = 0;

            for (int64_t k = r * MOST; k < (r + 1) * MOST; k++) {
                sum += ((double)y[k] - 1) / 2;
                squares += ((double)y[k] - 1) / 2 * ((double)y[k] - 1) / 2;
            }
            assert_true(fabs(sum / MOST) < 1e-5);
            assert_true(fabs(squares / MOST - 1) < 1e-5);
            assert_true(fabs((double)mean[r] - 30) < 0.2 && inv[r] > 1.5F && inv[r] < 2.0F);
        }
    }
}

static void column_sums_of_layer_normalisation_do_not_depend_on_the_blocks(void **state)
{
    static float x[ROWS * MOST], dy[ROWS * MOST], db[MOST], dscale[MOST], mean[ROWS], inv[ROWS];
    const int64_t n_blocks = (MOST + OT__SUM_BLOCK - 1) / OT__SUM_BLOCK;
    const ot__rows *rows;

    (void)state;
    fill(x, ROWS * MOST, 5, 1, 0);
    fill(dy, ROWS * MOST, 6, 1, 0);
    fill(mean, ROWS, 7, 1, 0);
    fill(inv, ROWS, 8, 1, 2);
    for (int isa = 0; (rows = ot__rows_at(isa)) != NULL; isa++) {
        ot__row_norm_grad grad = {.dscale = dscale,
                                  .db = db,
                                  .dy = dy,
                                  .x = x,
                                  .mean = mean,
                                  .inv = inv,
                                  .rows = ROWS,
                                  .columns = MOST};

        for (int64_t block = 0; block < n_blocks; block++)
            rows->layer_norm_sums(&grad, block, block + 1);
        for (int64_t k = 0; k < MOST; k++) {
            double sum = 0, sum_xh = 0;

            for (int64_t r = 0; r < ROWS; r++) {
                const int64_t at = r * MOST + k;

                sum += (double)dy[at];
                sum_xh += (double)dy[at] * ((double)x[at] - (double)mean[r]) * (double)inv[r];
            }
            check_near(db[k], sum);
            assert_true(fabs((double)dscale[k] - sum_xh) < 1e-5);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_and_its_logarithm_follow_their_formulas),
        cmocka_unit_test(gradients_of_softmax_follow_their_formulas),
        cmocka_unit_test(layer_normalisation_gives_mean_0_and_variance_1),
        cmocka_unit_test(column_sums_of_layer_normalisation_do_not_depend_on_the_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
