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

// With fewer registers tiles are ahead again at half the depth, or always; without vectors of 32
// bytes nothing was measured but y of few rows.
enum {
    ROWS_DEPTH = OT_ISA_LEVEL == 2   ? 8
                 : OT_ISA_LEVEL == 1 ? 4
                                     : 0, // of k, at most, where
    ROWS_COLUMNS = 64,                    // are enough of b; twice the depth where four times are;
    WIDE_DEPTH = OT_ISA_LEVEL == 2 ? 8 : 0, // or so much where eight times are
    ROWS_OF_Y = 4,
    // at most, of a b that is far, and of one whose rows fall on the same lines of the first cache
    ROWS_PASSED = OT_ISA_LEVEL == 1 ? 2 * ROWS_OF_Y : ROWS_OF_Y,
    ROWS_PASSED_CLASHING = OT_ISA_LEVEL == 1 ? 4 * ROWS_OF_Y : ROWS_OF_Y,
    ROWS_OF_B = 8,
    FEW_ROWS_OF_Y = 3,  // so many that registers hold what as many rows of b are multiplied by
    NEAR_FLOATS = 4096, // of y, which stay in the first cache beside rows of b
    ROWS_TOGETHER = 64, // of b, which stay in the second
    PAGE = OT__CLASH * sizeof(float),
};

// Rows of b, and what they are multiplied by for each row of y.
typedef struct passing_rows {
    const float *b;
    int64_t b_row;
    float a[ROWS_OF_Y][ROWS_OF_B];
} passing_rows;

typedef int32_t passing_mask __attribute__((vector_size(4 * LANES)));

// A vector of each row of y, from column j on: all arguments but y and j are constants where this
// is called, or do not change. Lanes that are not `kept` stay what they are.
OT_SIMD_INLINE void add_passing_vector(float *y, int64_t y_row, const passing_rows *p, int64_t j,
                                       int rows, int depth, bool is_first, passing_mask kept,
                                       bool keeps_all)
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
            sum[i] += p->a[i][k] * b;
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

// rows, depth and is_first are constants where this is called: y (rows, n) = a (rows, depth) * the
// rows of b, or is added to.
OT_SIMD_INLINE void add_passing(float *y, int64_t y_row, const passing_rows *p, int64_t n, int rows,
                                int depth, bool is_first)
{
    const passing_rows in = *p; // which no store to y can change
    const int64_t n_whole = n / LANES, step = begins_at_ends(y, p->b) ? -LANES : LANES;
    passing_mask kept = {0};
    int64_t j = step < 0 ? (n_whole - 1) * LANES : 0;

    for (int64_t i = 0; i < n_whole; i++, j += step)
        add_passing_vector(y, y_row, &in, j, rows, depth, is_first, kept, true);
    j = n_whole * LANES;
    if (j < n && n > LANES) {
        for (int l = 0; l < LANES; l++)
            kept[l] = n - LANES + l < j ? 0 : -1;
        add_passing_vector(y, y_row, &in, n - LANES, rows, depth, is_first, kept, false);
        return;
    }
    for (; j < n; j++)
        OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
        float sum = is_first ? 0 : y[i * y_row + j];

        OT_SIMD_UNROLL
        for (int k = 0; k < depth; k++)
            sum += in.a[i][k] * in.b[k * in.b_row + j];
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

// Rows of b: so many passes, of which so many go by all rows of y before the next.
typedef struct passes {
    const float *b;
    int64_t b_row, n, together;
} passes;

// y (rows, n) = or += a (rows, k) * b (k, n) for the k of passes first .. end - 1
static void pass_by(const ot__gemm *g, const passed_rows *r, const passes *b, int64_t n,
                    int64_t first, int64_t end, bool accumulates)
{
    for (int64_t pass = first; pass < end; pass++) {
        const int64_t k = g->k * pass / b->n, depth = g->k * (pass + 1) / b->n - k;
        passing_rows p = {.b = b->b + k * b->b_row, .b_row = b->b_row};

        for (int64_t i = 0; i < r->rows; i++)
            for (int64_t e = 0; e < depth; e++)
                p.a[i][e] = (float)g->alpha * r->a[i * g->a_row + (k + e) * g->a_column];
        passing_functions[depth - 1][r->rows - 1](r->y, r->y_row, &p, n, pass == 0 && !accumulates);
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
    float *sums = scratch + apart / sizeof(float) / CACHE_LINE * CACHE_LINE;

    for (int64_t first = 0, end; first < b->n; first = end) {
        end = OT_MIN(first + b->together, b->n);
        for (int64_t i = 0; i < n_groups; i++) {
            const int64_t row = rows * i / n_groups, row_end = rows * (i + 1) / n_groups;
            passed_rows near = rows_passed(g, data, part, row, row_end);

            near.y = sums + row * y_row;
            near.y_row = y_row;
            pass_by(g, &near, b, n, first, end, false);
        }
    }
    for (int64_t i = 0; i < rows; i++)
        store_line(all.y + i * all.y_row, sums + i * y_row, n, data->accumulates);
}

// plan->width columns at a time. Rows of b that are not contiguous are copied, for few passes.
static void run_passing(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *part, float *scratch)
{
    const ot__gemm *g = &plan->g;
    const int64_t rows = part->row_end - part->row;
    const bool copies = g->b_column != 1, is_often = g->k > 2 * ROWS_OF_B;
    const int64_t at_once = is_often && g->m > FEW_ROWS_OF_Y ? ROWS_OF_B / 2 : ROWS_OF_B;
    passes b = {.b_row = copies ? plan->width : g->b_row,
                .n = (g->k + at_once - 1) / at_once,
                .together = ROWS_TOGETHER / at_once};
    ot__gemm_part p = *part;

    for (int64_t n; p.column < part->column_end; p.column += n) {
        n = OT_MIN(part->column_end - p.column, plan->width);
        p.column_end = p.column + n;
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
            pass_by(g, &r, &b, n, 0, b.n, data->accumulates);
            finish_lines(plan, data, &p, row, end);
        }
    }
}

#endif
