// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: products of few rows or columns whose operands both have k contiguous, as
// the last layer of a classifier. Tiles would leave lanes of their vectors unused; here lanes go
// along k, each element of a tile of y is a vector of sums, and what is in its lanes is added at
// the end.
#ifndef OT_KERNELS_SIMD_GEMM_DOTS_H
#define OT_KERNELS_SIMD_GEMM_DOTS_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/product/simd_gemm_lines.h"
#include "kernels/simd_floats.h"

#if OT_VECTOR_LANES >= 8
// A tile is of DOT_MANY of the lines of which there are more, each of which is read once, and
// DOT_FEW of the others: more sums than multiply-adds are under way.
#if OT_VECTOR_LANES == 16
enum { DOT_MANY = 4, DOT_FEW = 4 };
#else
enum { DOT_MANY = 6, DOT_FEW = 2 };
#endif
enum {
    DOT_SUMS = DOT_MANY * DOT_FEW,
    DOTS_NEAR = 8192, // floats that the first cache holds
    // The cache that lines are fetched into: where the smaller vectors take longer to get to them,
    // those at hand would have to make place. Zen 4, AVX2, GFLOP/s of a * b^T, first and second:
    // 8 1024 1024 57 and 70, 8 128 512 69 and 74, 8 1000 1280 70 and 71.
    DOTS_FETCHED_INTO = OT_ISA_LEVEL == 2 ? OT_INTO_FIRST_CACHE : OT_INTO_SECOND_CACHE,
    DOT_TOTALS = (DOT_SUMS + LANES - 1) / LANES * LANES,
};

// Of x and y, whose lanes are blocks of 2 * H, the sums of the two halves of each block.
#define DOT_HALF(p, H) ((p) % (LANES / 2) / (H)*2 * (H) + (p) % (H) + (p) / (LANES / 2) * LANES)
#define DOT_LANES_8(M, H, at)                                                                      \
    M(0, H) + (at), M(1, H) + (at), M(2, H) + (at), M(3, H) + (at), M(4, H) + (at),                \
        M(5, H) + (at), M(6, H) + (at), M(7, H) + (at)
#if OT_VECTOR_LANES == 16
#define DOT_LANES(M, H, at)                                                                        \
    DOT_LANES_8(M, H, at), M(8, H) + (at), M(9, H) + (at), M(10, H) + (at), M(11, H) + (at),       \
        M(12, H) + (at), M(13, H) + (at), M(14, H) + (at), M(15, H) + (at)
#else
#define DOT_LANES DOT_LANES_8
#endif
#define DOT_FOLD(x, y, H)                                                                          \
    (__builtin_shufflevector(x, y, DOT_LANES(DOT_HALF, H, 0)) +                                    \
     __builtin_shufflevector(x, y, DOT_LANES(DOT_HALF, H, H)))

// Lane i of the result is the sum of the lanes of s[i].
OT_SIMD_INLINE ot__vector sum_lanes(ot__vector *s)
{
#if OT_VECTOR_LANES == 16
    OT_SIMD_UNROLL
    for (int i = 0; i < 8; i++)
        s[i] = DOT_FOLD(s[2 * i], s[2 * i + 1], 8);
#endif
    OT_SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        s[i] = DOT_FOLD(s[2 * i], s[2 * i + 1], 4);
    OT_SIMD_UNROLL
    for (int i = 0; i < 2; i++)
        s[i] = DOT_FOLD(s[2 * i], s[2 * i + 1], 2);
    return DOT_FOLD(s[0], s[1], 1);
}

typedef int32_t dot_mask __attribute__((vector_size(4 * LANES)));

// Lines of a and of b's transpose, from one element of k on, and how many of k follow. `next`: one
// or two of the next tile's lines, which are fetched meanwhile, next_line apart, or NULL: they may
// lie so far apart that the processor does not see which comes next.
typedef struct dot_lines {
    const float *few, *many, *next;
    int64_t few_line, many_line, next_line, k;
    float alpha;          // that sums are multiplied by
    const dot_mask *kept; // of a vector at the end of a line, what is left of it
} dot_lines;

// Of a vector at the end of a line that begins before what is left of it.
OT_SIMD_INLINE ot__vector load_end(const float *x, dot_mask kept)
{
    return (ot__vector)((dot_mask)ot__vector_load(x) & kept);
}

// All but the last `left` lanes are 0.
static dot_mask mask_end(int64_t left)
{
    dot_mask kept;

    for (int i = 0; i < LANES; i++)
        kept[i] = i < LANES - left ? 0 : -1;
    return kept;
}

// n_few, n_many and has_ended are constants where these are called. Lanes at p of the lines, or
// those at their ends.
OT_SIMD_INLINE void add_lanes(ot__vector *sum, const dot_lines *l, int64_t p, int n_few, int n_many,
                              bool has_ended)
{
    const dot_mask kept = has_ended ? *l->kept : (dot_mask){0};
    ot__vector few[DOT_FEW];

    OT_SIMD_UNROLL
    for (int i = 0; i < n_few; i++) {
        const float *x = l->few + i * l->few_line + p;

        few[i] = has_ended ? load_end(x, kept) : ot__vector_load(x);
    }
    OT_SIMD_UNROLL
    for (int j = 0; j < n_many; j++) {
        const float *x = l->many + j * l->many_line + p;
        ot__vector many = has_ended ? load_end(x, kept) : ot__vector_load(x);

        OT_SIMD_KEEP(many);
        OT_SIMD_UNROLL
        for (int i = 0; i < n_few; i++)
            sum[i * DOT_MANY + j] += few[i] * many;
    }
}

// All whole vectors of the lines. `fetches`: the next tile's, too.
OT_SIMD_INLINE void add_whole_lanes(ot__vector *sum, const dot_lines *l, int n_few, int n_many,
                                    bool fetches)
{
    for (int64_t p = 0; p + LANES <= l->k; p += LANES) {
        if (fetches) {
            __builtin_prefetch(l->next + p, 0, DOTS_FETCHED_INTO);
            __builtin_prefetch(l->next + l->next_line + p, 0, DOTS_FETCHED_INTO);
        }
        add_lanes(sum, l, p, n_few, n_many, false);
    }
}

// Where a tile's sums go: y[i * few_line + j * many_line], one of which is 1.
typedef struct dot_target {
    float *y;
    int64_t few_line, many_line;
    bool accumulates;
} dot_target;

#if OT_VECTOR_LANES == 16
// n sums that are side by side in y.
OT_SIMD_INLINE void store_row(float *y, ot__vector4 sums, int n, bool accumulates)
{
    if (accumulates) {
        ot__vector4 row = {0};

        memcpy(&row, y, (size_t)n * sizeof *y);
        sums += row;
    }
    memcpy(y, &sums, (size_t)n * sizeof *y);
}

#define DOT_ROW(sums, i)                                                                           \
    __builtin_shufflevector(sums, sums, 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3)

// Rows of y, of n sums each.
OT_SIMD_INLINE void store_rows(float *y, int64_t pitch, ot__vector sums, int n_rows, int n,
                               bool accumulates)
{
    store_row(y, DOT_ROW(sums, 0), n, accumulates);
    if (n_rows > 1)
        store_row(y + pitch, DOT_ROW(sums, 1), n, accumulates);
    if (n_rows > 2)
        store_row(y + 2 * pitch, DOT_ROW(sums, 2), n, accumulates);
    if (n_rows > 3)
        store_row(y + 3 * pitch, DOT_ROW(sums, 3), n, accumulates);
}

OT_SIMD_INLINE void store_sums(const dot_target *t, ot__vector *s, float alpha, int n_few,
                               int n_many)
{
    const ot__vector sums = alpha * sum_lanes(s);

    if (t->few_line != 1) {
        store_rows(t->y, t->few_line, sums, n_few, n_many, t->accumulates);
        return;
    }
    store_rows(
        t->y, t->many_line,
        __builtin_shufflevector(sums, sums, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        n_many, n_few, t->accumulates);
}
#else
OT_SIMD_INLINE void store_sums(const dot_target *t, ot__vector *s, float alpha, int n_few,
                               int n_many)
{
    float totals[DOT_TOTALS];

    OT_SIMD_UNROLL
    for (int i = 0; i < DOT_TOTALS; i += LANES)
        ot__vector_store(totals + i, alpha * sum_lanes(s + i));
    if (t->many_line == 1 && n_many == DOT_MANY) {
        for (int i = 0; i < n_few; i++)
            store_line(t->y + i * t->few_line, totals + i * DOT_MANY, DOT_MANY, t->accumulates);
        return;
    }
    OT_SIMD_UNROLL
    for (int j = 0; j < n_many; j++) {
        float *y = t->y + j * t->many_line;

        OT_SIMD_UNROLL
        for (int i = 0; i < n_few; i++)
            y[i * t->few_line] = t->accumulates ? y[i * t->few_line] + totals[i * DOT_MANY + j]
                                                : totals[i * DOT_MANY + j];
    }
}
#endif

// n_few x n_many lines.
OT_SIMD_INLINE void dot_tile(const dot_target *t, const dot_lines *l, int n_few, int n_many)
{
    const int64_t whole = l->k / LANES * LANES, end = l->k - LANES;
    ot__vector sum[DOT_TOTALS];

    OT_SIMD_UNROLL
    for (int i = 0; i < DOT_TOTALS; i++)
        sum[i] = (ot__vector){0};
    if (l->next != NULL)
        add_whole_lanes(sum, l, n_few, n_many, true);
    else
        add_whole_lanes(sum, l, n_few, n_many, false);
    if (whole < l->k)
        add_lanes(sum, l, end, n_few, n_many, true);
    store_sums(t, sum, l->alpha, n_few, n_many);
}

#define DOT_CASE(n_few, n_many)                                                                    \
    case n_many:                                                                                   \
        dot_tile(t, l, n_few, n_many);                                                             \
        break;
#if OT_VECTOR_LANES == 16
#define DOT_CASES(n) DOT_CASE(n, 1) DOT_CASE(n, 2) DOT_CASE(n, 3) DOT_CASE(n, 4)
#else
#define DOT_CASES(n)                                                                               \
    DOT_CASE(n, 1) DOT_CASE(n, 2) DOT_CASE(n, 3) DOT_CASE(n, 4) DOT_CASE(n, 5) DOT_CASE(n, 6)
#endif
#define DOT_CASES_OF(n)                                                                            \
    case n:                                                                                        \
        switch (n_many) {                                                                          \
            DOT_CASES(n)                                                                           \
        }                                                                                          \
        break;
static void dot_any_tile(const dot_target *t, const dot_lines *l, int n_few, int n_many)
{
    switch (n_few) {
        DOT_CASES_OF(1)
        DOT_CASES_OF(2)
#if OT_VECTOR_LANES == 16
        DOT_CASES_OF(3)
        DOT_CASES_OF(4)
#endif
    }
}

// All of y by the k of l, of which and of t only single members change from tile to tile: a copy of
// all would wait for what is still to be stored.
static void dot_block(dot_lines l, dot_target t, int64_t n_few, int64_t n_many)
{
    const int64_t n_fetched = n_few > (DOT_MANY - 1) * DOT_FEW ? 1 : 2; // lines by each tile
    const bool is_far = n_few > DOT_FEW && n_many * l.k > DOTS_NEAR;
    const dot_mask kept = mask_end(l.k % LANES);
    const float *first = l.few;
    float *y = t.y;

    l.next_line = (n_fetched - 1) * l.many_line;
    l.kept = &kept;
    for (int64_t j = 0; j < n_many; j += DOT_MANY) {
        const int many = (int)OT_MIN(n_many - j, (int64_t)DOT_MANY);
        int64_t next = DOT_MANY;

        l.few = first;
        t.y = y;
        for (int64_t i = 0; i < n_few; i += DOT_FEW, next += n_fetched) {
            const int few = (int)OT_MIN(n_few - i, (int64_t)DOT_FEW);
            const bool fetches = is_far && next < 2 * DOT_MANY && j + next + n_fetched <= n_many;

            l.next = fetches ? l.many + next * l.many_line : NULL;
            dot_any_tile(&t, &l, few, many);
            l.few += DOT_FEW * l.few_line;
            t.y += DOT_FEW * t.few_line;
        }
        l.many += DOT_MANY * l.many_line;
        y += DOT_MANY * t.many_line;
    }
}

// By plan->depth of k at a time, of which the few lines are copied: where lines are a power of two
// apart they push each other out of the cache.
static void run_dots(const ot__gemm_plan *plan, const ot__gemm_data *data,
                     const ot__gemm_part *part, float *copy)
{
    const ot__gemm *g = &plan->g;
    const bool by_rows = g->m > g->n; // of which there are more
    const int64_t rows = part->row_end - part->row, columns = part->column_end - part->column;
    const int64_t n_many = by_rows ? rows : columns, n_few = by_rows ? columns : rows;
    const float *a = (const float *)data->a + part->row * g->a_row,
                *b = (const float *)data->b + part->column * g->b_column;
    const int64_t n_blocks = (g->k + plan->depth - 1) / plan->depth;
    const int64_t n_lines = g->k / CACHE_LINE; // of the cache, in a line of k
    const dot_lines all = {.few = by_rows ? b : a,
                           .many = by_rows ? a : b,
                           .few_line = by_rows ? g->b_column : g->a_row,
                           .many_line = by_rows ? g->a_row : g->b_column,
                           .alpha = (float)g->alpha};
    dot_target t = {.y = (float *)data->y + part->row * g->y_row + part->column,
                    .few_line = by_rows ? 1 : g->y_row,
                    .many_line = by_rows ? g->y_row : 1,
                    .accumulates = data->accumulates};

    for (int64_t i = 0; i < n_blocks; i++) {
        const int64_t k = n_lines * i / n_blocks * CACHE_LINE;
        dot_lines l = all;

        l.k = (i + 1 == n_blocks ? g->k : n_lines * (i + 1) / n_blocks * CACHE_LINE) - k;
        l.few += k;
        l.many += k;
        if (n_blocks > 1) {
            for (int64_t few = 0; few < n_few; few++)
                memcpy(copy + few * DOTS_ROW, l.few + few * l.few_line, (size_t)l.k * sizeof *copy);
            l.few = copy;
            l.few_line = DOTS_ROW;
        }
        dot_block(l, t, n_few, n_many);
        t.accumulates = true;
    }
}
#endif

#endif
