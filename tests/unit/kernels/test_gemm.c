// SPDX-License-Identifier: Apache-2.0
// The f32 product of every instruction set this processor has, against sums in f64.
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 64, MAX_THREADS = 4, LARGEST_TILE = 6 };

typedef struct problem {
    int64_t m, n, k;
    bool ta, tb;
} problem;

static const problem problems[] = {
    {1, 1, 1, false, false},       {5, 7, 3, false, false},       {64, 10, 70, false, true},
    {3, 200, 33, false, true},     {200, 3, 33, false, true},     {29, 65, 1, true, false},
    {10, 70, 64, true, false},     {31, 47, 19, true, true},      {130, 300, 60, false, false},
    {40, 33, 1100, true, false},   {70, 90, 520, false, true},    {20, 530, 40, true, true},
    {3, 20, 1100, false, true},    {9, 70, 2100, true, true},     {150, 70, 530, true, false},
    {531, 110, 200, true, false},  {531, 110, 20, true, true},    {90, 150, 12, true, false},
    {90, 150, 7, true, false},     {300, 560, 96, false, true},   {40, 1024, 530, false, false},
    {40, 1030, 530, false, false}, {70, 84, 1100, false, false},  {84, 100, 200, true, false},
    {60, 300, 790, false, true},   {16, 90, 300, false, true},    {90, 16, 1100, false, true},
    {520, 1024, 20, false, false}, {1, 4117, 37, false, false},   {1, 17, 5, true, false},
    {1, 100, 30, false, false},    {2, 1100, 125, true, false},   {3, 1500, 90, false, false},
    {4, 1040, 131, true, false},   {4, 20000, 7, false, false},   {37, 70, 4, true, false},
    {37, 600, 15, false, false},   {6, 1300, 16, true, true},     {5, 260, 8, false, true},
    {70, 1100, 9, true, false},    {3, 1104, 530, false, false},  {9, 1100, 530, false, false},
    {1100, 20, 530, false, false}, {1100, 70, 530, false, false}, {1100, 15, 1024, false, false},
    {70, 1100, 530, false, true},  {14, 1100, 530, false, true},  {7, 5000, 1024, false, true},
    {90, 1104, 530, false, false}, {70, 1090, 530, false, false}, {70, 2050, 270, false, false},
    {8, 1030, 300, false, false},  {7, 5000, 27, true, false},    {15, 1024, 150, false, false},
    {13, 3072, 37, true, false},   {1, 300, 44, false, false},    {2, 1010, 43, false, false},
    {5, 300, 13, false, false},    {6, 270, 9, true, false},      {5, 131, 5, true, true},
    {40, 800, 24, true, false},    {31, 1100, 128, true, false},  {25, 2100, 40, false, true},
    {3, 4200, 1001, false, false}, {8, 50, 1030, false, true},    {70, 26, 300, true, true},
    {140, 530, 530, false, true},  {40, 11, 300, true, false},    {1100, 16, 530, true, false},
    {37, 7, 64, true, false},      {14, 2048, 270, false, false}, {37, 1016, 10, true, false},
    {6, 1032, 12, false, false},   {530, 1024, 40, true, false},  {40, 1030, 520, true, false},
    {17, 2048, 270, false, false}, {9, 128, 37, false, false},    {17, 320, 530, false, false},
    {11, 250, 60, false, false},   {12, 2048, 300, false, false}, {262, 256, 300, false, false},
};

typedef struct matrices {
    float *a, *b, *c, *y;
    size_t y_count;
} matrices;

// Numbers in -1 .. 1 that differ from place to place.
static float *numbers(int64_t count, unsigned seed)
{
    float *x = malloc((size_t)count * sizeof(*x));

    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        x[i] = (float)(int)(seed >> 8) / 8388608.0F - 1.0F;
    }
    return x;
}

static matrices matrices_make(const problem *p)
{
    matrices x = {numbers(p->m * p->k, 1), numbers(p->k * p->n, 2), numbers(p->n, 3), NULL, 0};

    x.y_count = (size_t)(p->m * p->n) + GUARD;
    x.y = malloc(x.y_count * sizeof(*x.y));
    for (size_t i = 0; i < x.y_count; i++)
        x.y[i] = 0.5F;
    return x;
}

static void matrices_free(matrices *x)
{
    free(x->a);
    free(x->b);
    free(x->c);
    free(x->y);
}

static ot__gemm gemm_of(const problem *p)
{
    return (ot__gemm){.m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .alpha = 0.75,
                      .beta = 2,
                      .a_row = p->ta ? 1 : p->k,
                      .a_column = p->ta ? p->m : 1,
                      .b_row = p->tb ? 1 : p->n,
                      .b_column = p->tb ? p->k : 1,
                      .c_column = 1,
                      .y_row = p->n};
}

static void first_batch(const void *context, int64_t batch, ot__gemm_data *data)
{
    (void)batch;
    *data = *(const ot__gemm_data *)context;
}

static void run(const ot__gemm_kernel *kernel, const ot__gemm *g, const ot__gemm_data *data,
                int n_threads)
{
    ot__gemm_plan plan;
    float *scratch;

    ot__gemm_plan_make(&plan, kernel, g, 1, n_threads);
    scratch = ot__alloc_aligned(plan.scratch_bytes * (size_t)n_threads);
    assert_non_null(scratch);
    memset(scratch, 0xFF, plan.scratch_bytes * (size_t)n_threads); // NaN
    ot__gemm_run(kernel, &plan, &(ot__gemm_batches){1, first_batch, data}, scratch, n_threads);
    ot__free_aligned(scratch);
}

static double exact(const ot__gemm *g, const matrices *x, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t k = 0; k < g->k; k++)
        sum += (double)x->a[i * g->a_row + k * g->a_column] *
               (double)x->b[k * g->b_row + j * g->b_column];
    return g->alpha * sum + g->beta * (double)x->c[j];
}

static double worst_error(const ot__gemm *g, const matrices *x, double before)
{
    double worst = 0;

    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            worst = fmax(worst, fabs(exact(g, x, i, j) + before - (double)x->y[i * g->n + j]));
    return worst;
}

static void check_guard(const matrices *x)
{
    for (size_t i = x->y_count - GUARD; i < x->y_count; i++)
        assert_true(x->y[i] == 0.5F);
}

static void products_agree_with_sums_in_f64(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < OT_COUNT(problems); i++) {
            const ot__gemm g = gemm_of(&problems[i]);
            matrices x = matrices_make(&problems[i]);
            const ot__gemm_data data = {.y = x.y, .a = x.a, .b = x.b, .c = x.c};

            run(kernel, &g, &data, 1);
            assert_true(worst_error(&g, &x, 0) < 1e-6 * (double)(g.k + 4));
            check_guard(&x);
            matrices_free(&x);
        }
}

// A b larger than the second cache, whose rows clash or which no cache keeps, and several blocks of
// the rows of `a`.
static void large_products_agree_with_sums_in_f64(void **state)
{
    static const problem large[] = {{520, 1030, 530, true, false},  {520, 1024, 530, true, true},
                                    {17, 4200, 1001, false, false}, {100, 2048, 300, false, false},
                                    {8, 4096, 1030, false, false},  {70, 700, 1010, false, true}};
    enum { EVERY = 13 }; // rows one is compared: any of a tile
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < OT_COUNT(large); i++) {
            const ot__gemm g = gemm_of(&large[i]);
            matrices x = matrices_make(&large[i]);
            const ot__gemm_data data = {
                .y = x.y, .a = x.a, .b = x.b, .c = x.c, .accumulates = true};
            ot__gemm rows = g;

            run(kernel, &g, &data, 1);
            rows.m = 1;
            for (int64_t row = 0; row < g.m; row += EVERY) {
                const matrices one = {
                    .a = x.a + row * g.a_row, .b = x.b, .c = x.c, .y = x.y + row * g.y_row};

                assert_true(worst_error(&rows, &one, 0.5) < 1e-6 * (double)(g.k + 4));
            }
            check_guard(&x);
            matrices_free(&x);
        }
}

static void no_plan_exceeds_the_most_scratch(void **state)
{
    static const int64_t extents[] = {1, 3, 16, 40, 129, 300, 512, 1000, 1024, 4096, 30522};
    enum { N = OT_COUNT(extents), FORMS = 8 };
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < N * N * N * FORMS; i++) {
            const size_t size = i / FORMS;
            const problem p = {extents[size % N], extents[size / N % N], extents[size / N / N],
                               i % 2 != 0, i / 2 % 2 != 0};
            ot__gemm g = gemm_of(&p);
            ot__gemm_plan plan;

            g.b_type = i / 4 % 2 != 0 ? OT_BF16 : OT_F32;
            ot__gemm_plan_make(&plan, kernel, &g, 1, 1 + (int)(size % MAX_THREADS));
            assert_true(plan.scratch_bytes <= ot__gemm_most_scratch(kernel));
        }
}

static void check_product(const ot__gemm_kernel *kernel, const problem *p, int n_threads)
{
    const ot__gemm g = gemm_of(p);
    matrices x = matrices_make(p);

    run(kernel, &g, &(ot__gemm_data){.y = x.y, .a = x.a, .b = x.b, .c = x.c}, n_threads);
    assert_true(worst_error(&g, &x, 0) < 1e-6 * (double)(g.k + 4));
    check_guard(&x);
    matrices_free(&x);
}

// What is read where it lies, and what is copied when, depends on how many tiles there are.
static void sizes_around_tiles_and_blocks_agree(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++) {
        const int64_t rows = kernel->tile_rows, lanes = kernel->lanes;
        const int64_t columns = kernel->tile_columns, width = kernel->width;
        const int64_t m[] = {rows - 1, rows + 1, 4 * rows, 4 * rows + 1, 9 * rows + 1};
        const int64_t n[] = {lanes - 1,   lanes,          columns + 1,
                             2 * columns, width,          2 * columns + lanes + 1,
                             width + 1,   width + columns};
        const int64_t k[] = {1, 6};

        for (size_t i = 0; i < OT_COUNT(m) * OT_COUNT(n) * OT_COUNT(k) * 4; i++) {
            const size_t size = i / 4;

            check_product(kernel,
                          &(problem){m[size % OT_COUNT(m)], n[size / OT_COUNT(m) % OT_COUNT(n)],
                                     k[size / OT_COUNT(m) / OT_COUNT(n)], i % 2 != 0,
                                     i / 2 % 2 != 0},
                          1 + (int)i % MAX_THREADS);
        }
        for (int form = 0; form < 4; form++)
            check_product(kernel,
                          &(problem){5 * rows + 1, columns + 1, kernel->depth + 1, form % 2 != 0,
                                     form / 2 != 0},
                          1);
    }
}

// Where lanes go along k: tails of k, and every number of rows and columns of the last tile.
static void few_rows_or_columns_agree(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++) {
        const int64_t lanes = kernel->lanes;
        const int64_t k[] = {4 * lanes, 4 * lanes + 1, 5 * lanes - 1};

        for (int64_t few = 1; few <= 2 * lanes; few++)
            for (int64_t many = 2 * lanes; many < 2 * lanes + LARGEST_TILE; many++)
                for (size_t i = 0; i < OT_COUNT(k); i++) {
                    check_product(kernel, &(problem){few, many, k[i], false, true},
                                  1 + (int)few % MAX_THREADS);
                    check_product(kernel, &(problem){many, few, k[i], false, true},
                                  1 + (int)few % MAX_THREADS);
                }
        for (int64_t few = 1; few <= lanes + 1; few++)
            for (int n_blocks = 1; n_blocks <= 3; n_blocks++) {
                const int64_t deep = n_blocks * kernel->dots_depth + 3;

                check_product(kernel, &(problem){few, 2 * lanes + 1, deep, false, true}, 1);
                check_product(kernel, &(problem){2 * lanes + 1, few, deep, false, true}, 2);
            }
    }
}

// One tile has all columns, in deeper blocks; y as it is and transposed.
static void columns_of_one_tile_agree(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++) {
        const int64_t most = kernel->most_columns;
        const int64_t n[] = {most - kernel->lanes + 1, most - 1, most, most + 1};
        const int64_t k[] = {7, kernel->depth_of_one, kernel->depth_of_one + 5};

        for (size_t i = 0; i < OT_COUNT(n) * OT_COUNT(k); i++)
            for (int64_t rows = 1; rows <= LARGEST_TILE; rows++) {
                const int64_t m = 2 * LARGEST_TILE + rows;
                const problem p = {m, n[i % OT_COUNT(n)], k[i / OT_COUNT(n)], rows % 2 != 0, false};

                check_product(kernel, &p, 1);
                check_product(kernel, &(problem){p.n, m, p.k, false, true}, 2);
            }
    }
}

// Blocks are deeper then; y as it is and transposed.
static void few_columns_of_many_rows_agree(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++) {
        const int64_t n[] = {2 * kernel->lanes + 1, kernel->width / 4, kernel->width / 2 + 1};

        for (size_t i = 0; i < OT_COUNT(n); i++)
            for (int form = 0; form < 4; form++) {
                const int64_t many = kernel->width + 3, k = kernel->most_depth + 5;

                check_product(kernel, &(problem){many, n[i], k, form % 2 != 0, form / 2 != 0}, 1);
                check_product(kernel, &(problem){n[i], many, k, form % 2 != 0, form / 2 != 0}, 2);
            }
    }
}

// What is read twice at the end of k counts once: infinite elements there, too.
static void ends_of_lines_count_once(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++) {
        const problem p = {3, 2, 4 * kernel->lanes + 1, false, true};
        const ot__gemm g = gemm_of(&p);
        matrices x = matrices_make(&p);

        x.a[p.k - kernel->lanes] = INFINITY;
        x.b[p.k - kernel->lanes] = x.b[2 * p.k - kernel->lanes] = 1;
        run(kernel, &g, &(ot__gemm_data){.y = x.y, .a = x.a, .b = x.b, .accumulates = true}, 1);
        for (int64_t j = 0; j < p.n; j++) {
            assert_true(isinf(x.y[j]) && x.y[j] > 0);
            assert_true(fabs(exact(&g, &x, 1, j) - g.beta * (double)x.c[j] + 0.5 -
                             (double)x.y[p.n + j]) < 1e-5);
        }
        check_guard(&x);
        matrices_free(&x);
    }
}

static void run_library(const ot__dnnl_gemm *d, const matrices *x, float *other)
{
    void *const slots[OT__DNNL_GEMM_SLOTS] = {[OT__DNNL_GEMM_A] = x->a,
                                              [OT__DNNL_GEMM_B] = x->b,
                                              [OT__DNNL_GEMM_BIAS] = x->c,
                                              [OT__DNNL_GEMM_OTHER] = other,
                                              [OT__DNNL_GEMM_Y] = x->y};
    ot__dnnl_primitives *program;
    void *scratch;

    assert_int_equal(ot__dnnl_gemm_create(d, &program), OT_OK);
    scratch = ot__alloc_aligned(ot__dnnl_scratch_bytes(program));
    assert_int_equal(ot__dnnl_run(program, slots, scratch), OT_OK);
    ot__free_aligned(scratch);
    ot__dnnl_destroy(program);
}

// Of a * b + bias, or of what is there + a * b.
static void check_library(const problem *p, bool packs, bool accumulates)
{
    ot__gemm g = gemm_of(p);
    matrices x = matrices_make(p);
    const ot__dnnl_gemm d = {.g = &g,
                             .n_batches = 1,
                             .packs = packs,
                             .has_bias = !accumulates,
                             .accumulates = accumulates};

    g.alpha = 1;
    g.beta = accumulates ? 0 : 1;
    run_library(&d, &x, NULL);
    assert_true(worst_error(&g, &x, accumulates ? 0.5 : 0) < 1e-6 * (double)(g.k + 4));
    check_guard(&x);
    matrices_free(&x);
}

// Of (a * b + bias) * other.
static void check_library_times_other(const problem *p)
{
    ot__gemm g = gemm_of(p);
    matrices x = matrices_make(p);
    const ot__dnnl_gemm d = {
        .g = &g, .n_batches = 1, .has_bias = true, .after = OT__DNNL_GEMM_MULTIPLY};
    float *other = ot__alloc_aligned((size_t)(p->m * g.y_row) * sizeof *other);

    for (int64_t k = 0; k < p->m * g.y_row; k++)
        other[k] = (float)(k % 5 - 2) * 0.25F;
    g.alpha = g.beta = 1;
    run_library(&d, &x, other);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const double factor = (double)other[i * g.y_row + j];

            assert_true(fabs(exact(&g, &x, i, j) * factor - (double)x.y[i * g.y_row + j]) <
                        1e-6 * (double)(g.k + 4));
        }
    check_guard(&x);
    ot__free_aligned(other);
    matrices_free(&x);
}

static void products_of_the_library_agree_with_sums_in_f64(void **state)
{
    (void)state;
    if (!OT_WITH_ONEDNN)
        skip(); // a build without oneDNN
    for (size_t i = 0; i < OT_COUNT(problems); i++)
        for (int packs = 0; packs < 2; packs++)
            for (int accumulates = 0; accumulates < 2; accumulates++)
                check_library(&problems[i], packs != 0, accumulates != 0);
    for (size_t i = 0; i < OT_COUNT(problems); i++)
        check_library_times_other(&problems[i]);
}

static void products_can_be_added_to_what_is_there(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < OT_COUNT(problems); i++) {
            const ot__gemm g = gemm_of(&problems[i]);
            matrices x = matrices_make(&problems[i]);
            const ot__gemm_data data = {
                .y = x.y, .a = x.a, .b = x.b, .c = x.c, .accumulates = true};

            run(kernel, &g, &data, 2);
            assert_true(worst_error(&g, &x, 0.5) < 1e-6 * (double)(g.k + 4));
            check_guard(&x);
            matrices_free(&x);
        }
}

static void the_number_of_threads_changes_no_bit(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < OT_COUNT(problems); i++) {
            const ot__gemm g = gemm_of(&problems[i]);
            matrices one = matrices_make(&problems[i]);

            run(kernel, &g, &(ot__gemm_data){.y = one.y, .a = one.a, .b = one.b, .c = one.c}, 1);
            for (int n_threads = 2; n_threads <= MAX_THREADS; n_threads++) {
                matrices x = matrices_make(&problems[i]);

                run(kernel, &g, &(ot__gemm_data){.y = x.y, .a = x.a, .b = x.b, .c = x.c},
                    n_threads);
                assert_memory_equal(x.y, one.y, x.y_count * sizeof(*x.y));
                matrices_free(&x);
            }
            matrices_free(&one);
        }
}

// y = max(y, other)
static void at_least(float *y, const float *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t i = 0; i < n; i++)
        y[i] = fmaxf(x[0][i], x[1][i]);
}

static void the_epilogue_sees_finished_elements_once(void **state)
{
    const ot__gemm_kernel *kernel;

    (void)state;
    for (int isa = 0; (kernel = ot__gemm_kernel_at(isa)) != NULL; isa++)
        for (size_t i = 0; i < OT_COUNT(problems); i++) {
            const ot__gemm g = gemm_of(&problems[i]);
            matrices x = matrices_make(&problems[i]);
            float *other = numbers(g.m * g.n, 4);
            const ot__gemm_data data = {
                .y = x.y, .a = x.a, .b = x.b, .c = x.c, .epilogue = {at_least, NULL, other}};

            run(kernel, &g, &data, 3);
            for (int64_t at = 0; at < g.m * g.n; at++)
                assert_true(fabs(fmax(exact(&g, &x, at / g.n, at % g.n), (double)other[at]) -
                                 (double)x.y[at]) < 1e-6 * (double)(g.k + 4));
            free(other);
            matrices_free(&x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_exceeds_the_most_scratch),
        cmocka_unit_test(products_agree_with_sums_in_f64),
        cmocka_unit_test(large_products_agree_with_sums_in_f64),
        cmocka_unit_test(sizes_around_tiles_and_blocks_agree),
        cmocka_unit_test(few_rows_or_columns_agree),
        cmocka_unit_test(columns_of_one_tile_agree),
        cmocka_unit_test(few_columns_of_many_rows_agree),
        cmocka_unit_test(ends_of_lines_count_once),
        cmocka_unit_test(products_of_the_library_agree_with_sums_in_f64),
        cmocka_unit_test(products_can_be_added_to_what_is_there),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(the_epilogue_sees_finished_elements_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
