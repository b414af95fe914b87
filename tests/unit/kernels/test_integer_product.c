// SPDX-License-Identifier: Apache-2.0
// Products of integers against plain sums, at the edges of tiles and with zero points of every
// kind.
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { M_MAX = 9, N_MAX = 513, K_MAX = 70 };

static int element(const int8_t *data, bool is_signed, int64_t i)
{
    return is_signed ? data[i] : (uint8_t)data[i];
}

static void fill(int8_t *data, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        data[i] = (int8_t)(256 * ot__rng_uniform((ot__rng_key){seed, 0}, (uint64_t)i) - 128);
}

typedef struct operands {
    int8_t a[M_MAX * K_MAX], b[K_MAX * N_MAX], a_zero[M_MAX], b_zero[N_MAX];
    int16_t wide[K_MAX * N_MAX];
    int32_t y[M_MAX * N_MAX];
} operands;

static void expect_product(operands *o, int64_t m, int64_t n, int64_t k, int64_t a_zeros,
                           int64_t b_zeros, bool a_is_signed, bool b_is_signed)
{
    const ot__zero_points b_zero = {o->b_zero, b_zeros};
    const ot__integer_product p = {m, n, k, o->a, a_is_signed, {o->a_zero, a_zeros}, o->wide};

    ot__ref_integer_widen(o->wide, o->b, b_is_signed, &b_zero, k, n);
    ot__ref_integer_product(o->y, &p);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t sum = 0;

            for (int64_t l = 0; l < k; l++) {
                const int a0 = a_zeros > 0 ? element(o->a_zero, a_is_signed, i % a_zeros) : 0;
                const int b0 = b_zeros > 0 ? element(o->b_zero, b_is_signed, j % b_zeros) : 0;

                sum += (int64_t)(element(o->a, a_is_signed, i * k + l) - a0) *
                       (element(o->b, b_is_signed, l * n + j) - b0);
            }
            assert_int_equal(o->y[i * n + j], sum);
        }
}

static void products_are_plain_sums(void **state)
{
    static const int64_t m[] = {1, 4, 5, M_MAX}, n[] = {1, 255, 256, 257, N_MAX},
                         k[] = {0, 1, K_MAX};
    operands *o = calloc(1, sizeof *o);

    (void)state;
    assert_non_null(o);
    fill(o->a, M_MAX * K_MAX, 1);
    fill(o->b, K_MAX * N_MAX, 2);
    fill(o->a_zero, M_MAX, 3);
    fill(o->b_zero, N_MAX, 4);
    for (size_t i = 0; i < OT_COUNT(m); i++)
        for (size_t j = 0; j < OT_COUNT(n); j++)
            for (size_t l = 0; l < OT_COUNT(k); l++) {
                expect_product(o, m[i], n[j], k[l], m[i], n[j], (i + j) % 2 == 0, j % 2 == 0);
                expect_product(o, m[i], n[j], k[l], 1, 1, i % 2 == 0, l % 2 == 0);
                expect_product(o, m[i], n[j], k[l], 0, 0, false, true);
            }
    free(o);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_plain_sums)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
