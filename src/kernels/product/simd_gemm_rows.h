// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: products of so few rows, or so little depth, that reading b, or writing y,
// takes longest. Rows of b are added to a few rows of y at a time, all of them from end to end:
// tiles would have a few columns of all rows first, whose distance hides what comes next from the
// processor.
#ifndef OT_KERNELS_SIMD_GEMM_ROWS_H
#define OT_KERNELS_SIMD_GEMM_ROWS_H

#include "kernels/kernels.h"
#include "kernels/product/simd_gemm_lines.h"
#include "kernels/simd.h"

// Without vectors of 32 bytes nothing was measured but y of few rows.
enum {
    // Of k, at most, where so many columns are enough; twice the depth where four times are, and
    // with fewer registers y is small; on processors other than Zen 3 and 4 where eight times are.
    ROWS_DEPTH = OT_ISA_LEVEL > 0 ? 8 : 0,
    ROWS_COLUMNS = 64,
    SMALL_ROWS = 1 << 16,
    WIDE_DEPTH = OT_ISA_LEVEL == 2 ? 8 : 0,
    ROWS_OF_Y = 4,
    // at most, of a b that is far, and of one whose rows fall on the same lines of the first cache
    ROWS_PASSED = OT_ISA_LEVEL == 1 ? 2 * ROWS_OF_Y : ROWS_OF_Y,
    ROWS_PASSED_CLASHING = OT_ISA_LEVEL == 1 ? 4 * ROWS_OF_Y : ROWS_OF_Y,
    ROWS_OF_B = 8,                 // at once, at most
    FEW_ROWS_OF_B = 2 * ROWS_OF_B, // for which sums go where they belong at once
    FEW_ROWS_OF_Y = 3, // so many that registers hold what as many rows of b are multiplied by
    SHORT_ROW = OT_ISA_LEVEL == 1 ? 1024 : 0, // floats of rows of b of which fewer come at once
    NEAR_FLOATS = 4096, // of y, which stay in the first cache beside rows of b
    ROWS_TOGETHER = 64, // of b, which stay in the second
    PAGE = OT__CLASH * sizeof(float),
};

// Rows of b, and what each of them in turn is multiplied by for each row of y. Rows of b that are
// `ahead` floats further are fetched meanwhile; 0: none.
typedef struct passing_rows {
    const float *b, *a;
    int64_t b_row, ahead;
} passing_rows;

typedef int32_t passing_mask __attribute__((vector_size(4 * LANES)));

// A vector of each row of y, from column j on: all arguments but y and j are constants where this
// is called, or do not change. Lanes that are not `kept` stay what they are.
OT_SIMD_INLINE void add_passing_vector(float *y, int64_t y_row, const passing_rows *p,
                                       float (*a)[ROWS_OF_B], int64_t j, int rows, int depth,
                                       bool is_first, passing_mask kept, bool keeps_all)
{
    ot__vector sum[ROWS_OF_Y];

    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        sum[i] = is_first ? (ot__vector){0} : ot__vector_load(y + i * y_row + j);
    OT_SIMD_UNROLL
    for (int k = 0; k < depth; k++) {
        ot__vector b = ot__vector_load(p->b + k * p->b_row + j);

        OT_SIMD_KEEP(b);
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            sum[i] += a[i][k] * b;
    }
    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
        float *to = y + i * y_row + j;

        if (!keeps_all)
            sum[i] = (ot__vector)(((passing_mask)sum[i] & kept) |
                                  ((passing_mask)ot__vector_load(to) & ~kept));
        ot__vector_store(to, sum[i]);
    }
}

// Whether to begin at the ends of rows. A load whose address ends in the same 12 bits as that of a
// store that is under way waits for it: what is loaded after y's vector is stored must not lie
// where y's does, which in one of the two directions it does not.
static bool begins_at_ends(const float *y, const float *b)
{
    const uintptr_t apart = ((uintptr_t)y - (uintptr_t)b) % PAGE;

    return apart > 0 && apart < PAGE / 2;
}

// A line of each of the rows that are fetched, for several vectors of those that pass by.
OT_SIMD_INLINE void fetch_passing(const passing_rows *p, int64_t vector, int64_t j, int depth)
{
    if (vector % (CACHE_LINE / LANES) == 0)
        OT_SIMD_UNROLL
    for (int k = 0; k < depth; k++)
        __builtin_prefetch(p->b + k * p->b_row + p->ahead + j, 0, OT_INTO_SECOND_CACHE);
}

// rows, depth and is_first are constants where this is called: y (rows, n) = a (rows, depth) * the
// rows of b, or is added to.
OT_SIMD_INLINE void add_passing(float *y, int64_t y_row, const passing_rows *p, int64_t n, int rows,
                                int depth, bool is_first)
{
    const passing_rows in = *p; // no store to y can change it
    float a[ROWS_OF_Y][ROWS_OF_B];
    const int64_t n_whole = n / LANES, step = begins_at_ends(y, p->b) ? -LANES : LANES;
    passing_mask kept = {0};
    int64_t j = step < 0 ? (n_whole - 1) * LANES : 0;

    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int k = 0; k < depth; k++)
        a[i][k] = in.a[k * rows + i];
    if (depth >= ROWS_OF_B / 2 && depth % 2 == 0 && in.ahead != 0) {
        for (int64_t i = 0; i < n_whole; i++, j += step) {
            fetch_passing(&in, i, j, depth);
            add_passing_vector(y, y_row, &in, a, j, rows, depth, is_first, kept, true);
        }
    } else {
        for (int64_t i = 0; i < n_whole; i++, j += step)
            add_passing_vector(y, y_row, &in, a, j, rows, depth, is_first, kept, true);
    }
    j = n_whole * LANES;
    if (j < n && n > LANES) {
        for (int l = 0; l < LANES; l++)
            kept[l] = n - LANES + l < j ? 0 : -1;
        add_passing_vector(y, y_row, &in, a, n - LANES, rows, depth, is_first, kept, false);
        return;
    }
    for (; j < n; j++)
        OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
        float sum = is_first ? 0 : y[i * y_row + j];

        OT_SIMD_UNROLL
        for (int k = 0; k < depth; k++)
            sum += a[i][k] * in.b[k * in.b_row + j];
        y[i * y_row + j] = sum;
    }
}

// A function for each number of rows and each depth.
typedef void passing_function(float *y, int64_t y_row, const passing_rows *p, int64_t n,
                              bool is_first);
#define PASSING(rows, depth)                                                                       \
    static void passing_##rows##_##depth(float *y, int64_t y_row, const passing_rows *p,           \
                                         int64_t n, bool is_first)                                 \
    {                                                                                              \
        if (is_first)                                                                              \
            add_passing(y, y_row, p, n, rows, depth, true);                                        \
        else                                                                                       \
            add_passing(y, y_row, p, n, rows, depth, false);                                       \
    }
#define PASSING_ROWS(depth) PASSING(1, depth) PASSING(2, depth) PASSING(3, depth) PASSING(4, depth)
#define PASSING_NAMES(depth)                                                                       \
    {                                                                                              \
        passing_1_##depth, passing_2_##depth, passing_3_##depth, passing_4_##depth                 \
    }
PASSING_ROWS(1)
PASSING_ROWS(2)
PASSING_ROWS(3)
PASSING_ROWS(4)
PASSING_ROWS(5)
PASSING_ROWS(6)
PASSING_ROWS(7)
PASSING_ROWS(8)
static passing_function *const passing_functions[ROWS_OF_B][ROWS_OF_Y] = {
    PASSING_NAMES(1), PASSING_NAMES(2), PASSING_NAMES(3), PASSING_NAMES(4),
    PASSING_NAMES(5), PASSING_NAMES(6), PASSING_NAMES(7), PASSING_NAMES(8)};

// Rows of a that b passes by, and where their sums go.
typedef struct passed_rows {
    const float *a;
    float *y;
    int64_t rows, y_row;
} passed_rows;

// Rows of b, of which at most so many pass by at once.
typedef struct passes {
    const float *b;
    int64_t b_row, ahead, at_once;
} passes;

// What rows from .. end - 1 of b are multiplied by, for all rows that they pass by: where columns
// of `a` are contiguous, vectors.
static void gather_passed(float *to, const ot__gemm *g, const passed_rows *r, int64_t from,
                          int64_t end)
{
    const float alpha = (float)g->alpha, *a = r->a + from * g->a_column;
    const int64_t rows = r->rows, a_column = g->a_column, n = end - from;

    if (rows == ROWS_OF_Y && g->a_row == 1) {
        for (int64_t k = 0; k < n; k++)
            OT_SIMD_UNROLL
        for (int i = 0; i < ROWS_OF_Y; i++)
            to[k * ROWS_OF_Y + i] = alpha * a[k * a_column + i];
        return;
    }
    for (int64_t i = 0; i < rows; i++, a += g->a_row)
        for (int64_t k = 0; k < n; k++)
            to[k * rows + i] = alpha * a[k * a_column];
}

// y (rows, n) = or += a (rows, k) * b (k, n), for k = from .. to - 1: at most ROWS_TOGETHER.
static void pass_by(const ot__gemm *g, const passed_rows *r, const passes *b, int64_t n,
                    int64_t from, int64_t to, bool accumulates)
{
    float a[ROWS_TOGETHER * ROWS_OF_Y];
    int64_t n_passes = (to - from + b->at_once - 1) / b->at_once;

    gather_passed(a, g, r, from, to);
    for (int64_t k = from, depth; k < to; k += depth) {
        const passing_rows p = {.b = b->b + k * b->b_row,
                                .a = a + (k - from) * r->rows,
                                .b_row = b->b_row,
                                .ahead = b->ahead};

        depth = (to - k + n_passes - 1) / n_passes;
        n_passes--;
        passing_functions[depth - 1][r->rows - 1](r->y, r->y_row, &p, n, k == 0 && !accumulates);
    }
}

// Rows first .. end - 1 of a part.
static passed_rows rows_passed(const ot__gemm *g, const ot__gemm_data *data,
                               const ot__gemm_part *part, int64_t first, int64_t end)
{
    return (passed_rows){.a = (const float *)data->a + (part->row + first) * g->a_row,
                         .y = (float *)data->y + (part->row + first) * g->y_row + part->column,
                         .rows = end - first,
                         .y_row = g->y_row};
}

// All rows of a part where there are many passes: sums are in scratch meanwhile, as far from b in
// the first cache as can be, and their rows on different lines of it.
static void pass_by_often(const ot__gemm *g, const ot__gemm_data *data, const ot__gemm_part *part,
                          const passes *b, int64_t n, float *scratch)
{
    const uintptr_t apart = ((uintptr_t)b->b + PAGE / 2 - (uintptr_t)scratch) % PAGE;
    const int64_t rows = part->row_end - part->row, n_groups = (rows + ROWS_OF_Y - 1) / ROWS_OF_Y;
    const passed_rows all = rows_passed(g, data, part, 0, rows);
    const int64_t y_row = (n + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE + CACHE_LINE;
    const int64_t together = ROWS_TOGETHER / b->at_once * b->at_once;
    float *sums = scratch + apart / sizeof(float) / CACHE_LINE * CACHE_LINE;

    for (int64_t from = 0, to; from < g->k; from = to) {
        to = OT_MIN(from + together, g->k);
        for (int64_t i = 0; i < n_groups; i++) {
            const int64_t row = rows * i / n_groups, row_end = rows * (i + 1) / n_groups;
            passed_rows near = rows_passed(g, data, part, row, row_end);

            near.y = sums + row * y_row;
            near.y_row = y_row;
            pass_by(g, &near, b, n, from, to, false);
        }
    }
    for (int64_t i = 0; i < rows; i++)
        store_line(all.y + i * all.y_row, sums + i * y_row, n, data->accumulates);
}

// Rows of b that pass by at once: fewer where registers cannot hold what they are multiplied by, of
// short rows, and where with those of y they are more lines than have place in a set of the first
// cache; more where rows are nearly a multiple of a page apart: what is loaded of one then waits
// for what is stored of another. Zen 4, GFLOP/s by as many rows:
//
//   AVX2           4   6   8                  4   6   8
//   1 1024 1024    34  34  32   2 1000 1000   59  57  56
//   1 1000 1000    32  33  32   3 1024 1024   79  73  70
//   1 3072 768     28  30  31   2 30522 768   24  26  27
//   64 256 8       75      68   1024 1024 8   68      58
//
//   AVX-512        4   5   8                  4   6   8
//   256 1024 16    105 103 85   1 1024 1024   43  44  41
//   256 768 16     112 106 105  2 1024 1024   83  80  76
//   256 768 10     103 109 109  4 1024 1024   105 110 105
//   256 1008 16    86  83  95   2 1000 1000   71  71  72
//   Intel: 128 512 8   144 185  1024 1024 8   92     116
static int64_t passing_at_once(const ot__gemm *g)
{
    enum { FEWEST = ROWS_OF_B / 2, FEWER = FEWEST + 1, FEW = ROWS_OF_B - 2 };
    enum { NEARLY = 2 * CACHE_LINE };
    const int64_t apart = (g->b_row + NEARLY) % OT__CLASH; // of a multiple less NEARLY
    const bool clashes = apart == NEARLY, is_near = apart < 2 * NEARLY && !clashes;

    if (OT_ISA_LEVEL == 2 && g->k > FEW_ROWS_OF_B)
        return clashes ? FEW : ROWS_OF_B;
    if (OT_ISA_LEVEL == 2)
        return ot__is_intel() || g->m <= FEW_ROWS_OF_Y || is_near ? ROWS_OF_B : FEWER;
    if (g->m > FEW_ROWS_OF_Y)
        return FEWEST;
    if (g->n <= SHORT_ROW)
        return g->m == 1 ? FEW : FEWEST;
    return ROWS_OF_B;
}

// At most plan->width columns at a time. Rows of b that are not contiguous are copied, for few
// passes.
static void run_passing(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *part, float *scratch)
{
    const ot__gemm *g = &plan->g;
    const int64_t rows = part->row_end - part->row;
    const bool copies = g->b_column != 1, is_often = g->k > FEW_ROWS_OF_B;
    const int64_t at_once = passing_at_once(g);
    const int64_t n_pieces = (part->column_end - part->column + plan->width - 1) / plan->width;
    passes b = {.b_row = copies ? plan->width : g->b_row,
                .ahead = plan->walks_b ? at_once * g->b_row : 0,
                .at_once = at_once};

    for (int64_t i = 0; i < n_pieces; i++) {
        const ot__gemm_part p = piece_of_columns(part, i, n_pieces);
        const int64_t n = p.column_end - p.column;

        b.b = (const float *)data->b + p.column * g->b_column;
        if (copies) {
            ot__transpose_floats(&OT_ISA_NAME(ot__moves), scratch, b.b_row, b.b, g->b_column, g->k,
                                 n);
            b.b = scratch;
        }
        if (is_often) {
            pass_by_often(g, data, &p, &b, n, scratch);
            finish_lines(plan, data, &p, 0, rows);
            continue;
        }
        for (int64_t row = 0, end; row < rows; row = end) {
            passed_rows r;

            end = OT_MIN(row + ROWS_OF_Y, rows);
            r = rows_passed(g, data, &p, row, end);
            pass_by(g, &r, &b, n, 0, g->k, data->accumulates);
            finish_lines(plan, data, &p, row, end);
        }
    }
}

#endif
