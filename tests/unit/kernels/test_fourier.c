// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of f32 by the code of every instruction set this processor has, against those
// of the same numbers by the reference in f64.
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_THREADS = 3, GUARD = 32 };
static const float UNTOUCHED = -12345.0F;

// What is transformed: lines of n points, `used` of which are there.
typedef struct kind {
    const char *name;
    int from_parts, to_parts;
    bool is_half, is_inverse, is_doubled, is_windowed;
} kind;

static const kind kinds[] = {
    {.name = "complex", .from_parts = 2, .to_parts = 2},
    {.name = "complex, inverse", .from_parts = 2, .to_parts = 2, .is_inverse = true},
    {.name = "real", .from_parts = 1, .to_parts = 2},
    {.name = "real, window", .from_parts = 1, .to_parts = 2, .is_windowed = true},
    {.name = "complex, window", .from_parts = 2, .to_parts = 2, .is_windowed = true},
    {.name = "real, one side", .from_parts = 1, .to_parts = 2, .is_half = true},
    {.name = "real, one side, inverse and doubled",
     .from_parts = 1,
     .to_parts = 2,
     .is_half = true,
     .is_inverse = true,
     .is_doubled = true},
    {.name = "to real", .from_parts = 2, .to_parts = 1, .is_inverse = true},
    {.name = "to real, not inverse", .from_parts = 2, .to_parts = 1},
    {.name = "one side to real", .from_parts = 2, .to_parts = 1, .is_half = true},
    {.name = "one side to real, inverse and doubled",
     .from_parts = 2,
     .to_parts = 1,
     .is_half = true,
     .is_inverse = true,
     .is_doubled = true},
};

// Where lines are: one after the other, or beside each other, or with gaps between their points.
typedef enum place { DENSE, BESIDE, GAPS, PLACES } place;

typedef struct arrays {
    int64_t n_from, n_to; // elements
    float *x, *y, *window, *scratch, *tables;
    double *exact_x, *exact_y, *exact_window, *work;
} arrays;

static void *get(size_t bytes)
{
    void *memory = calloc(bytes == 0 ? 1 : bytes, 1);

    assert_non_null(memory);
    return memory;
}

static ot__fourier_side side(place where, int64_t outer, int64_t inner, int64_t points, int parts)
{
    const int gap = where == GAPS ? 3 : 1;

    (void)outer;
    if (where == BESIDE)
        return (ot__fourier_side){.outer = points * inner * parts,
                                  .inner = parts,
                                  .point = inner * parts,
                                  .used = points,
                                  .points = points,
                                  .parts = parts};
    return (ot__fourier_side){.outer = inner * points * parts * gap,
                              .inner = points * parts * gap,
                              .point = parts * gap,
                              .used = points,
                              .points = points,
                              .parts = parts};
}

static ot__fourier_lines lines(const kind *k, place where, int64_t n, int64_t outer, int64_t inner,
                               int64_t used)
{
    const int64_t half = k->is_half ? n / 2 + 1 : n;
    ot__fourier_lines l = {.outer = outer,
                           .inner = inner,
                           .is_inverse = k->is_inverse,
                           .scale = k->is_inverse ? 1 / (double)n : 1,
                           .is_windowed = k->is_windowed};

    l.from = side(where, outer, inner, k->from_parts == 2 ? half : n, k->from_parts);
    l.to = side(where, outer, inner, k->to_parts == 2 ? half : n, k->to_parts);
    l.from.is_doubled = k->is_doubled && k->to_parts == 1;
    l.to.is_doubled = k->is_doubled && k->to_parts == 2;
    // Padded signals, and those of which a part is made.
    if (used < n && (k->from_parts == 1 || !k->is_half))
        l.from.used = OT_MIN(used, l.from.used);
    if (used < n && k->to_parts == 1)
        l.to.used = used;
    return l;
}

static arrays make_arrays(const ot__fourier_lines *l, int64_t n)
{
    arrays a = {.n_from = l->outer * l->from.outer, .n_to = l->outer * l->to.outer};
    uint32_t seed = (uint32_t)n * 2654435761U + 1;

    a.x = get((size_t)a.n_from * sizeof(float));
    a.exact_x = get((size_t)a.n_from * sizeof(double));
    a.y = get((size_t)(a.n_to + 2 * GUARD) * sizeof(float));
    a.exact_y = get((size_t)a.n_to * sizeof(double));
    a.window = get((size_t)n * sizeof(float));
    a.exact_window = get((size_t)n * sizeof(double));
    for (int64_t i = 0; i < a.n_from; i++) {
        seed = seed * 1664525U + 1013904223U;
        a.exact_x[i] = a.x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    for (int64_t i = 0; i < n; i++)
        a.exact_window[i] = a.window[i] = 0.25F + (float)(i % 7) / 8;
    return a;
}

static void free_arrays(arrays *a)
{
    free(a->x);
    free(a->y);
    free(a->window);
    free(a->exact_x);
    free(a->exact_y);
    free(a->exact_window);
}

static void run_exact(const ot__fourier_lines *stated, const arrays *a, int64_t n)
{
    const int64_t tables = ot__fourier_table_size(n), scratch = ot__fourier_scratch_size(n);
    double *memory = get((size_t)(tables + scratch) * sizeof(double));
    ot__fourier_lines l = *stated;
    ot__fourier f;

    l.window = a->exact_window;
    ot__fourier_make(&f, n, memory, memory + tables);
    ot__ref_fourier_f64(a->exact_y, a->exact_x, &f, &l, 1, memory + tables);
    free(memory);
}

// Roundings that a number goes through: in a pass the sum of as many products as the factor, and a
// product of complex numbers by a root that is rounded too. A convolution is two transforms and
// three products, and what it passes through may be four times as large as its result.
static double count_roundings(const ot__fast_fourier *f)
{
    enum { OF_PRODUCT = 4, OF_ENDS = 8, OF_CONVOLUTION = 4 };
    double count = f->is_folded ? f->lanes + OF_PRODUCT : 0;

    for (int i = 0; i < f->n_factors; i++)
        count += f->factor[i] + OF_PRODUCT;
    if (f->chirp != NULL)
        count = OF_CONVOLUTION * (2 * count + 3 * OF_PRODUCT);
    return count + OF_ENDS;
}

// Errors of all numbers of an array, by their norms: all but the last digits are held by each pass.
static void check_result(const ot__fast_fourier *f, const arrays *a, const char *what)
{
    const float *y = a->y + GUARD;
    double error = 0, size = 0;

    for (int64_t i = 0; i < a->n_to; i++) {
        error += (y[i] - a->exact_y[i]) * (y[i] - a->exact_y[i]);
        size += a->exact_y[i] * a->exact_y[i];
    }
    if (!(sqrt(error) <= count_roundings(f) * ldexp(1, -24) * sqrt(size)))
        fail_msg("%s: %d points, %d lanes, folded %d: error %g of %g, %g roundings", what,
                 (int)f->n, f->lanes, f->is_folded, sqrt(error / size), sqrt(size),
                 count_roundings(f));
    for (int i = 0; i < GUARD; i++)
        if (a->y[i] != UNTOUCHED || y[a->n_to + i] != UNTOUCHED)
            fail_msg("%s: %d points, %d lanes: written beside the result", what, (int)f->n,
                     f->lanes);
}

// By up to three threads, whose bits must be the same, into memory that says what was not written.
static void check_table(const ot__fouriers *by, const ot__fourier_lines *stated, const arrays *a,
                        int64_t n, const char *what)
{
    ot__fourier_lines l = *stated;
    const size_t size = (size_t)(a->n_to + 2 * GUARD);
    float *first = get(size * sizeof(float)), *tables, *scratch;
    ot__fast_fourier f;
    double *work;

    l.window = a->window;
    ot__fast_fourier_plan(&f, n, &l, by->lanes);
    tables = get((size_t)ot__fast_fourier_table_size(&f) * sizeof(float));
    scratch = get((size_t)(MOST_THREADS * ot__fast_fourier_scratch_size(&f)) * sizeof(float));
    work = get((size_t)(ot__fourier_table_size(f.points) + ot__fourier_scratch_size(f.points)) *
               sizeof(double));
    ot__fast_fourier_make(&f, tables, work);
    for (int parts = 1; parts <= MOST_THREADS; parts++) {
        memset(scratch, 0xff, (size_t)(parts * ot__fast_fourier_scratch_size(&f)) * sizeof(float));
        for (size_t i = 0; i < size; i++)
            a->y[i] = UNTOUCHED;
        for (int64_t i = 0; i < a->n_to; i++) // gaps between points
            a->y[GUARD + i] = (float)a->exact_y[i] == 0 ? 0 : UNTOUCHED;
        ot__fast_fourier_run(a->y + GUARD, a->x, by, &f, &l, parts, scratch);
        check_result(&f, a, what);
        if (parts == 1)
            memcpy(first, a->y, size * sizeof(float));
        else
            assert_memory_equal(first, a->y, size * sizeof(float));
    }
    free(first);
    free(tables);
    free(scratch);
    free(work);
}

static void check_lines(const kind *k, place where, int64_t n, int64_t outer, int64_t inner,
                        int64_t used)
{
    const ot__fourier_lines l = lines(k, where, n, outer, inner, used);
    arrays a = make_arrays(&l, n);

    run_exact(&l, &a, n);
    for (int i = 0; ot__fouriers_at(i) != NULL; i++)
        check_table(ot__fouriers_at(i), &l, &a, n, k->name);
    free_arrays(&a);
}

static void every_length_is_transformed(void **state)
{
    static const int64_t more[] = {81,  96,  100, 112, 121,  125,  127,  128,  130,  169,
                                   192, 200, 210, 211, 243,  256,  272,  400,  422,  512,
                                   544, 625, 928, 961, 1000, 1009, 1024, 1155, 2018, 2048};
    enum { ALL_UP_TO = 70 };

    (void)state;
    for (size_t k = 0; k < OT_COUNT(kinds); k++) {
        for (int64_t n = 1; n <= ALL_UP_TO; n++)
            check_lines(&kinds[k], DENSE, n, 1, 19, n);
        for (size_t i = 0; i < OT_COUNT(more); i++)
            check_lines(&kinds[k], DENSE, more[i], 1, 17, more[i]);
    }
}

static void long_lines_are_transformed(void **state)
{
    static const int64_t lengths[] = {4096, 3125, 5040, 10007, 16384, 65536};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(lengths); i++)
        for (size_t k = 0; k < OT_COUNT(kinds); k += 5)
            check_lines(&kinds[k], DENSE, lengths[i], 1, 2, lengths[i]);
}

// Numbers of lines around those of lanes, in arrays of every kind.
static void lines_lie_anywhere(void **state)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33};
    static const int64_t lengths[] = {6, 15, 16, 32, 37, 48, 64, 150};

    (void)state;
    for (size_t k = 0; k < OT_COUNT(kinds); k++)
        for (size_t i = 0; i < OT_COUNT(lengths); i++)
            for (size_t c = 0; c < OT_COUNT(counts); c++)
                for (int where = 0; where < PLACES; where++)
                    check_lines(&kinds[k], (place)where, lengths[i], 1 + (int64_t)c % 3, counts[c],
                                lengths[i]);
}

static void signals_are_padded_and_cut(void **state)
{
    static const int64_t lengths[] = {2, 5, 16, 30, 37, 64, 74, 256, 512};

    (void)state;
    for (size_t k = 0; k < OT_COUNT(kinds); k++)
        for (size_t i = 0; i < OT_COUNT(lengths); i++)
            for (int where = 0; where < PLACES; where++)
                for (int64_t used = 1; used < lengths[i]; used += 1 + used / 2) {
                    check_lines(&kinds[k], (place)where, lengths[i], 2, 3, used);
                    check_lines(&kinds[k], (place)where, lengths[i], 1, 16, used);
                }
}

// Each line's errors are by its own size, whatever lies beside it.
static void a_quiet_line_beside_a_loud_one_keeps_its_digits(void **state)
{
    enum { N = 400, LINES = 34 };
    const kind *k = &kinds[5];
    ot__fourier_lines l = lines(k, DENSE, N, 1, LINES, N), one = lines(k, DENSE, N, 1, 1, N);
    arrays a = make_arrays(&l, N);

    (void)state;
    assert_string_equal(k->name, "real, one side");
    for (int64_t i = 0; i < a.n_from; i++)
        a.exact_x[i] = a.x[i] *= i / N % 2 == 0 ? 0x1p-8F : 0x1p8F;
    run_exact(&l, &a, N);
    for (int i = 0; ot__fouriers_at(i) != NULL; i++) {
        check_table(ot__fouriers_at(i), &l, &a, N, k->name);
        for (int64_t line = 0; line < LINES; line++) {
            arrays alone = a;
            ot__fast_fourier f;

            ot__fast_fourier_plan(&f, N, &l, ot__fouriers_at(i)->lanes);
            alone.n_to = one.to.inner;
            alone.exact_y += line * one.to.inner;
            alone.y = get((size_t)(alone.n_to + 2 * GUARD) * sizeof(float));
            for (int64_t j = 0; j < alone.n_to + 2 * GUARD; j++)
                alone.y[j] = UNTOUCHED;
            memcpy(alone.y + GUARD, a.y + GUARD + line * one.to.inner,
                   (size_t)alone.n_to * sizeof(float));
            check_result(&f, &alone, "one of many");
            free(alone.y);
        }
    }
    free_arrays(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_transformed),
        cmocka_unit_test(long_lines_are_transformed),
        cmocka_unit_test(lines_lie_anywhere),
        cmocka_unit_test(signals_are_padded_and_cut),
        cmocka_unit_test(a_quiet_line_beside_a_loud_one_keeps_its_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
