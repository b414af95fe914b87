// SPDX-License-Identifier: Apache-2.0
// What the pieces of elementwise operators are made of, against indices taken element by element:
// lines shorter and longer than pieces, operands that are whole, rows, columns and scalars, types
// that are converted, several threads.
#include "ops/elementwise/elementwise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_OPERANDS = 3 };

// Extents of y; bit k of an operand's mask: it has axis k, else 1 there.
typedef struct shape_case {
    ot_shape y;
    unsigned mask[N_OPERANDS];
} shape_case;

static const shape_case cases[] = {
    {{3, {3, 5, 7}}, {7, 4, 3}},
    {{2, {70, 601}}, {3, 2, 1}},
    {{2, {70, 601}}, {3, 0, 1}},
    {{3, {4, 3, 1100}}, {7, 6, 5}},
    {{3, {4, 3, 1100}}, {3, 4, 1}},
    {{2, {5, 1025}}, {1, 1, 2}},
    {{4, {2, 3, 20, 15}}, {15, 2, 13}},
    {{4, {2, 3, 1, 900}}, {15, 2, 8}},
    {{2, {300, 3}}, {3, 1, 2}},
    {{1, {5000}}, {1, 0, 1}},
    {{0, {0}}, {0, 0, 0}},
    {{2, {0, 600}}, {3, 2, 1}},
    {{3, {2, 40, 64}}, {7, 3, 4}},
    {{3, {2, 40, 63}}, {7, 3, 4}},
    {{3, {30, 2, 255}}, {7, 5, 2}},
    {{2, {9, 256}}, {3, 1, 2}},
    {{5, {2, 1, 3, 2, 700}}, {31, 17, 14}},
    {{3, {9, 24, 2}}, {5, 6, 7}},  // short rows again and again beside whole planes
    {{3, {11, 53, 2}}, {7, 3, 6}}, // an element for each short row
    {{3, {11, 53, 4}}, {3, 1, 2}},
    {{4, {3, 11, 53, 8}}, {7, 11, 13}},
    {{3, {11, 53, 16}}, {3, 6, 5}},
    {{3, {11, 53, 6}}, {3, 7, 1}},
    {{3, {9, 24, 2}}, {5, 6, 5}},
    {{3, {7, 19, 3}}, {5, 6, 3}},
    {{3, {5, 211, 5}}, {7, 5, 6}},
    {{3, {5, 130, 63}}, {6, 5, 1}},
    {{3, {4, 8, 2}}, {5, 6, 7}},
    {{3, {40, 7, 2}}, {5, 6, 7}},
    {{4, {3, 4, 170, 3}}, {13, 11, 14}},
    {{4, {3, 4, 170, 3}}, {8, 14, 9}},
};

static ot_shape shape_of(const shape_case *c, unsigned mask)
{
    ot_shape s = c->y;

    for (int k = 0; k < s.ndim; k++)
        s.dim[k] = mask >> k & 1 ? s.dim[k] : 1;
    return s;
}

// Small whole numbers, which every type has, so that the sum below is exact in f32.
static double number(int operand, int64_t at)
{
    return (double)((at * 7 + operand * 3) % 31);
}

static int64_t source_of(const ot_shape *y, const ot_shape *x, int64_t at)
{
    int64_t from = 0, stride = 1;

    for (int k = y->ndim - 1; k >= 0; k--) {
        from += x->dim[k] == 1 ? 0 : at % y->dim[k] * stride;
        stride *= x->dim[k];
        at /= y->dim[k];
    }
    return from;
}

static double expected(const ot_shape *y, const ot_shape *x, int64_t at)
{
    return number(0, source_of(y, &x[0], at)) + 32 * number(1, source_of(y, &x[1], at)) +
           number(2, source_of(y, &x[2], at));
}

#define WEIGHTED_SUM(name, T)                                                                      \
    static void name(void *y, const void *const *x, int64_t n, const void *context)                \
    {                                                                                              \
        const T *x0 = x[0], *x1 = x[1], *x2 = x[2];                                                \
                                                                                                   \
        (void)context;                                                                             \
        for (int64_t k = 0; k < n; k++)                                                            \
            ((T *)y)[k] = (T)(x0[k] + 32 * x1[k] + x2[k]);                                         \
    }
WEIGHTED_SUM(weighted_sum_f32, float)
WEIGHTED_SUM(weighted_sum_f64, double)
WEIGHTED_SUM(weighted_sum_i64, int64_t)

static void fill(ot_arg *a, int operand)
{
    assert_true(ot__shape_count(&a->shape, &a->count));
    a->data = malloc((size_t)(a->count + 1) * ot__element_size(a->dtype));
    assert_non_null(a->data);
    for (int64_t k = 0; k < a->count; k++) {
        const double value = number(operand, k);

        ot__convert((uint8_t *)a->data + (size_t)k * ot__element_size(a->dtype), a->dtype, &value,
                    OT_F64, 1);
    }
}

static void check(const shape_case *c, const ot_dtype *dtype, ot_dtype y_dtype, ot__piece piece,
                  bool converts)
{
    ot_arg x[N_OPERANDS], y = {.dtype = y_dtype, .shape = c->y};
    ot_shape shape[N_OPERANDS];
    const ot_arg *in[N_OPERANDS];
    const void *data[N_OPERANDS];
    ot__elementwise plan;

    fill(&y, 0);
    for (int i = 0; i < N_OPERANDS; i++) {
        shape[i] = shape_of(c, c->mask[i]);
        x[i] = (ot_arg){.dtype = dtype[i], .shape = shape[i]};
        fill(&x[i], i);
        in[i] = &x[i];
        data[i] = x[i].data;
    }
    (converts ? ot__elementwise_plan_f32 : ot__elementwise_plan)(&plan, &y, in, N_OPERANDS);
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        ot__parallel_set(n_threads);
        memset(y.data, 0xFF, (size_t)y.count * ot__element_size(y_dtype));
        ot__elementwise_run(&plan, y.data, data, piece, NULL);
        for (int64_t at = 0; at < y.count; at++) {
            double found, want = expected(&c->y, shape, at);

            if (y_dtype == OT_F16 || y_dtype == OT_BF16) { // as the type rounds it
                uint16_t rounded;

                ot__convert(&rounded, y_dtype, &want, OT_F64, 1);
                ot__convert(&want, OT_F64, &rounded, y_dtype, 1);
            }
            ot__convert(&found, OT_F64, (uint8_t *)y.data + (size_t)at * ot__element_size(y_dtype),
                        y_dtype, 1);
            assert_true(found == want);
        }
    }
    ot__parallel_set(1);
    free(y.data);
    for (int i = 0; i < N_OPERANDS; i++)
        free(x[i].data);
}

static void check_all(const ot_dtype *dtype, ot_dtype y_dtype, ot__piece piece, bool converts)
{
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        check(&cases[i], dtype, y_dtype, piece, converts);
}

static void pieces_have_the_elements_of_stretched_operands(void **state)
{
    (void)state;
    check_all((ot_dtype[]){OT_F32, OT_F32, OT_F32}, OT_F32, weighted_sum_f32, false);
    check_all((ot_dtype[]){OT_F64, OT_F64, OT_F64}, OT_F64, weighted_sum_f64, false);
    check_all((ot_dtype[]){OT_I64, OT_I64, OT_I64}, OT_I64, weighted_sum_i64, false);
}

static void pieces_in_f32_have_the_elements_of_narrow_operands(void **state)
{
    (void)state;
    check_all((ot_dtype[]){OT_F16, OT_F16, OT_F16}, OT_F16, weighted_sum_f32, true);
    check_all((ot_dtype[]){OT_BF16, OT_F32, OT_F16}, OT_F32, weighted_sum_f32, true);
    check_all((ot_dtype[]){OT_F32, OT_F32, OT_F32}, OT_BF16, weighted_sum_f32, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_elements_of_stretched_operands),
        cmocka_unit_test(pieces_in_f32_have_the_elements_of_narrow_operands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
