// SPDX-License-Identifier: Apache-2.0
// Strided copies by the code of every instruction set this processor has, against one element at a
// time: every kind of strides, sizes around vectors, cache lines and the pieces that threads share.
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_BYTES = 1 << 20, GUARD = 64, UNTOUCHED = 0xA5 };
static const size_t sizes[] = {1, 2, 4, 8, 16};
static uint8_t *source, *result, *expected;

static int set_up(void **state)
{
    (void)state;
    source = malloc(MOST_BYTES + GUARD);
    result = malloc(MOST_BYTES + GUARD);
    expected = malloc(MOST_BYTES + GUARD);
    if (source == NULL || result == NULL || expected == NULL)
        return -1;
    for (size_t i = 0; i < MOST_BYTES + GUARD; i++)
        source[i] = (uint8_t)(i * 2654435761U >> 13);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(source);
    free(result);
    free(expected);
    return 0;
}

static void copy_one_by_one(uint8_t *y, const uint8_t *x, const ot__strided *s)
{
    int64_t at[OT__STRIDED_MAX_NDIM] = {0};

    for (;;) {
        int64_t y_at = s->y_offset, x_at = s->x_offset;
        int k = s->ndim - 1;

        for (int i = 0; i < s->ndim; i++) {
            y_at += at[i] * s->y_stride[i];
            x_at += at[i] * s->x_stride[i];
        }
        memcpy(y + y_at * (int64_t)s->size, x + x_at * (int64_t)s->size, s->size);
        while (k >= 0 && ++at[k] == s->dim[k])
            at[k--] = 0;
        if (k < 0)
            return;
    }
}

// Of all sizes and instruction sets, into memory where each other byte has to stay as it is.
static void check_copies(const ot__strided *stated)
{
    for (size_t i = 0; i < OT_COUNT(sizes); i++) {
        ot__strided s = *stated, simple;

        s.size = sizes[i];
        memset(expected, UNTOUCHED, MOST_BYTES + GUARD);
        copy_one_by_one(expected, source, &s);
        simple = s;
        ot__strided_simplify(&simple);
        for (int isa = OT__ISA_BASE; isa <= (int)OT__ISA_LAST; isa++) {
            ot__isa_limit((ot__isa)isa);
            memset(result, UNTOUCHED, MOST_BYTES + GUARD);
            ot__simd_strided_copy(result, source, &simple);
            assert_memory_equal(result, expected, MOST_BYTES + GUARD);
        }
        ot__isa_limit(OT__ISA_LAST);
    }
}

// y (dims) = x, whose axes have other strides: those of a whole with the axes in the order `perm`.
static void check_transpose(int ndim, const int64_t *dim, const int *perm)
{
    ot__strided s = {0};
    int64_t x_stride[OT_MAX_NDIM], x_step = 1, y_stride[OT_MAX_NDIM], y_step = 1;

    for (int k = ndim - 1; k >= 0; k--) {
        x_stride[perm[k]] = x_step;
        x_step *= dim[perm[k]];
        y_stride[k] = y_step;
        y_step *= dim[k];
    }
    for (int k = 0; k < ndim; k++)
        ot__strided_add_axis(&s, dim[k], x_stride[k], y_stride[k]);
    check_copies(&s);
}

static void matrices_of_all_edges_are_transposed(void **state)
{
    static const int64_t extents[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 65};

    (void)state;
    for (size_t r = 0; r < OT_COUNT(extents); r++)
        for (size_t c = 0; c < OT_COUNT(extents); c++)
            check_transpose(2, (const int64_t[]){extents[r], extents[c]}, (const int[]){1, 0});
}

static void axes_take_any_order(void **state)
{
    (void)state;
    check_transpose(4, (const int64_t[]){2, 3, 5, 32}, (const int[]){0, 2, 1, 3});
    check_transpose(4, (const int64_t[]){2, 3, 17, 9}, (const int[]){0, 1, 3, 2});
    check_transpose(4, (const int64_t[]){2, 6, 7, 3}, (const int[]){0, 3, 1, 2});
    check_transpose(4, (const int64_t[]){2, 3, 6, 7}, (const int[]){0, 2, 3, 1});
    check_transpose(3, (const int64_t[]){11, 13, 17}, (const int[]){2, 1, 0});
    check_transpose(6, (const int64_t[]){2, 4, 5, 2, 3, 2}, (const int[]){0, 3, 1, 4, 2, 5});
    check_transpose(3, (const int64_t[]){5, 6, 4}, (const int[]){1, 0, 2}); // pairs, and more
}

static void pieces_of_threads_fit_together(void **state)
{
    (void)state;
    check_transpose(2, (const int64_t[]){200, 150}, (const int[]){1, 0});
    check_transpose(3, (const int64_t[]){130, 3, 77}, (const int[]){1, 0, 2});
    check_copies(&(ot__strided){1, {65536}, {1}, {1}, 0, 0, 0}); // more than a piece has columns
    check_copies(&(ot__strided){2, {2, 17000}, {0, 1}, {17000, 1}, 0, 0, 0});
    check_copies(&(ot__strided){2, {2, 17000}, {1, 2}, {17000, 1}, 0, 0, 0});
    check_copies(&(ot__strided){2, {3, 17000}, {1, 0}, {17000, 1}, 0, 0, 0});
}

static void rows_of_every_length_are_copied_and_filled(void **state)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 300};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(lengths); i++) {
        const int64_t n = lengths[i];

        check_copies(&(ot__strided){2, {5, n}, {n + 3, 1}, {n + 1, 1}, 1, 2, 0});
        check_copies(&(ot__strided){2, {5, n}, {n, 1}, {2 * n, 1}, 0, n, 0}); // a part of a whole
        check_copies(&(ot__strided){2, {5, n}, {3, 0}, {n + 1, 1}, 1, 2, 0});
        check_copies(&(ot__strided){3, {2, 3, n}, {n, 0, 1}, {3 * n, n, 1}, 0, 0, 0}); // repeated
        check_copies(&(ot__strided){2, {5, n}, {3 * n, 3}, {n, 1}, 2, 0, 0});
        check_copies(&(ot__strided){2, {5, n}, {n, 1}, {2 * n, 2}, 0, 1, 0});
        check_copies(&(ot__strided){2, {5, n}, {-n, -1}, {n, 1}, 5 * n - 1, 0, 0});
    }
    check_copies(&(ot__strided){2, {5, 2}, {3, 1}, {2, 1}, 0, 0, 0}); // no pairs: 3 is odd
    check_copies(&(ot__strided){2, {5, 2}, {4, 1}, {2, 1}, 1, 0, 0}); // nor from 1 on
}

static void nothing_is_copied_of_no_elements(void **state)
{
    ot__strided s = {3, {2, 0, 3}, {0, 3, 1}, {0, 3, 1}, 0, 0, 4};

    (void)state;
    ot__strided_simplify(&s);
    memset(result, UNTOUCHED, GUARD);
    ot__simd_strided_copy(result, source, &s);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(result[i], UNTOUCHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_all_edges_are_transposed),
        cmocka_unit_test(axes_take_any_order),
        cmocka_unit_test(pieces_of_threads_fit_together),
        cmocka_unit_test(rows_of_every_length_are_copied_and_filled),
        cmocka_unit_test(nothing_is_copied_of_no_elements),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
