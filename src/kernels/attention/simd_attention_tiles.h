// SPDX-License-Identifier: Apache-2.0
// Part of simd_attention.c: products of blocks in tiles that stay in registers, and copies of rows
// into the order that the tiles read.
#ifndef OT_KERNELS_SIMD_ATTENTION_TILES_H
#define OT_KERNELS_SIMD_ATTENTION_TILES_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd.h"

#if OT_ISA_LEVEL == 2 // 28 sums, two vectors of b; 32 registers
enum { TILE_ROWS = 14, TILE_VECTORS = 2 };
#elif OT_ISA_LEVEL == 1    // 12 sums, two vectors of b, one of a; 16 registers
enum { TILE_ROWS = 6, TILE_VECTORS = 2 };
#elif defined(__aarch64__) // 24 sums, four vectors of b; 32 registers
enum { TILE_ROWS = 6, TILE_VECTORS = 4 };
#else
enum { TILE_ROWS = 4, TILE_VECTORS = 2 };
#endif
enum {
    LANES = OT_VECTOR_LANES,
    PANEL = TILE_VECTORS * LANES, // queries whose scores stand side by side
    LATE_VECTORS = TILE_VECTORS / 2,
    LATE = PANEL - LATE_VECTORS * LANES, // the first lane of the half with the later queries
    QUERIES = 64,                        // whole panels
    KEYS = 64,
    PITCH_STEP = 16,
    ROWS_AHEAD = PANEL < 16 ? 16 : PANEL, // of tensors, that are fetched while others are copied
    CACHE_LINE = 16,                      // floats
};

// Floats from one copied row of n elements to the next: rows must not fall on the same lines of the
// cache.
static int64_t pitch_of(int64_t n)
{
    const int64_t pitch = (n + PITCH_STEP - 1) / PITCH_STEP * PITCH_STEP;

    return pitch % (8 * PITCH_STEP) == 0 ? pitch + PITCH_STEP : pitch;
}

// ---- rows that are needed soon ----

// n rows of `size` floats, `position` floats apart.
typedef struct ahead_rows {
    const float *at;
    int64_t position, n, size;
} ahead_rows;

enum { AHEAD_TENSORS = 8 };

// Rows that are fetched into the second cache while products are computed: so many with each tile,
// those of the last tensor first.
typedef struct ahead {
    ahead_rows tensors[AHEAD_TENSORS];
    int64_t n_tensors, rows_a_tile;
} ahead;

static void fetch_ahead(ahead *x)
{
    for (int64_t i = 0; i < x->rows_a_tile && x->n_tensors > 0; i++) {
        ahead_rows *r = &x->tensors[x->n_tensors - 1];

        for (int64_t e = 0; e < r->size; e += CACHE_LINE)
            __builtin_prefetch(r->at + e, 0, OT_INTO_SECOND_CACHE);
        r->at += r->position;
        if (--r->n == 0)
            x->n_tensors--;
    }
}

// n rows of a head, unless its elements lie apart, or there is no tensor.
static void add_ahead(ahead *to, const void *tensor, const ot__heads *lies,
                      const ot__attention_head *head, int64_t n, int64_t size)
{
    if (tensor == NULL || lies->element != 1)
        return;
    to->tensors[to->n_tensors++] =
        (ahead_rows){(const float *)tensor + ot__heads_at(lies, head->batch, head->head),
                     lies->position, n, size};
}

// For so many tiles.
static void pace_ahead(ahead *x, int64_t n_tiles)
{
    int64_t n_rows = 0;

    for (int64_t i = 0; i < x->n_tensors; i++)
        n_rows += x->tensors[i].n;
    x->rows_a_tile = (n_rows + n_tiles - 1) / n_tiles;
}

// ---- the tile ----

// y = a * b, y + a * b, or y * factor + a * b.
typedef enum tile_kind { TILE_SET, TILE_ADD, TILE_SCALE_ADD } tile_kind;

typedef struct product {
    float *y;
    const float *a, *b, *factor; // factor: for each column
    int64_t y_row, a_row, a_k, b_k;
    int64_t rows, depth;
    int64_t n_early; // rows of scores, or their number in depth, that all lanes have; the later
                     // half alone has the others
    ahead *ahead;
} product;

// All arguments but p, row and column are constants where it is called.
OT_SIMD_INLINE void attention_tile(const product *p, int64_t row, int64_t column, int rows,
                                   int vectors, tile_kind kind, int64_t a_row, int64_t a_k)
{
    const float *a = p->a + row * a_row, *b = p->b + column;
    const int64_t b_k = p->b_k;
    ot__vector sum[TILE_ROWS][TILE_VECTORS];

    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = (ot__vector){0};
    for (int64_t k = 0; k < p->depth; k++) {
        ot__vector columns[TILE_VECTORS];

        OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            columns[v] = ot__vector_load(b + v * LANES);
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] += a[i * a_row] * columns[v];
        a += a_k;
        b += b_k;
    }
    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
        float *y = p->y + (row + i) * p->y_row + column + v * LANES;

        if (kind == TILE_ADD)
            sum[i][v] += ot__vector_load(y);
        if (kind == TILE_SCALE_ADD)
            sum[i][v] += ot__vector_load(y) * ot__vector_load(p->factor + column + v * LANES);
        ot__vector_store(y, sum[i][v]);
    }
}

// n tiles, one below the other, of `rows` rows, which the compiler must know to keep the sums in
// registers.
OT_SIMD_INLINE void attention_tiles(const product *p, int64_t row, int64_t n, int64_t column,
                                    int rows, int vectors, tile_kind kind, int64_t a_row,
                                    int64_t a_k)
{
    for (; n > 0; n--, row += rows) {
        fetch_ahead(p->ahead);
        attention_tile(p, row, column, rows, vectors, kind, a_row, a_k);
    }
}

#define ATTENTION_CASE(rows)                                                                       \
    case rows:                                                                                     \
        attention_tiles(p, row, n, column, rows, vectors, kind, a_row, a_k);                       \
        break;
#define ATTENTION_CASES_4 ATTENTION_CASE(1) ATTENTION_CASE(2) ATTENTION_CASE(3) ATTENTION_CASE(4)
#define ATTENTION_CASES_6 ATTENTION_CASES_4 ATTENTION_CASE(5) ATTENTION_CASE(6)
#define ATTENTION_CASES_14                                                                         \
    ATTENTION_CASES_6 ATTENTION_CASE(7) ATTENTION_CASE(8) ATTENTION_CASE(9) ATTENTION_CASE(10)     \
        ATTENTION_CASE(11) ATTENTION_CASE(12) ATTENTION_CASE(13) ATTENTION_CASE(14)
OT_SIMD_INLINE void attention_tiles_of(const product *p, int64_t row, int64_t n, int64_t column,
                                       int64_t rows, int vectors, tile_kind kind, int64_t a_row,
                                       int64_t a_k)
{
    switch (rows) {
#if OT_ISA_LEVEL == 2
        ATTENTION_CASES_14
#elif OT_ISA_LEVEL > 0 || defined(__aarch64__)
        ATTENTION_CASES_6
#else
        ATTENTION_CASES_4
#endif
    }
}

static int64_t n_tiles_of(int64_t rows)
{
    return (rows + TILE_ROWS - 1) / TILE_ROWS;
}

// Rows row .. end - 1, about the same number in each tile: first those with one more.
OT_SIMD_INLINE void multiply_range(const product *p, int64_t row, int64_t end, int64_t column,
                                   int vectors, tile_kind kind, int64_t a_row, int64_t a_k)
{
    for (int64_t left = n_tiles_of(end - row), n; left > 0; left -= n) {
        const int64_t more = (end - row) % left, rows = (end - row) / left + (more > 0);

        n = more > 0 ? more : left;
        attention_tiles_of(p, row, n, column, rows, vectors, kind, a_row, a_k);
        row += n * rows;
    }
}

// The three products. Scores: y = a * b with rows of a one after the other, one panel of columns.
static void multiply_rows(const product *p)
{
    multiply_range(p, 0, p->n_early, 0, TILE_VECTORS, TILE_SET, p->a_row, 1);
    multiply_range(p, p->n_early, p->rows, LATE, LATE_VECTORS, TILE_SET, p->a_row, 1);
}

// One panel of columns, a's columns one after the other: a * b, y + a * b or y * factor + a * b.
static void multiply_columns(const product *p, tile_kind kind)
{
    product early = *p, late = *p;

    early.depth = p->n_early;
    late.depth = p->depth - p->n_early;
    late.a += p->n_early * p->a_k;
    late.b += p->n_early * p->b_k;
    if (kind == TILE_SET)
        multiply_range(&early, 0, p->rows, 0, TILE_VECTORS, TILE_SET, 1, p->a_k);
    else if (kind == TILE_SCALE_ADD)
        multiply_range(&early, 0, p->rows, 0, TILE_VECTORS, TILE_SCALE_ADD, 1, p->a_k);
    else
        multiply_range(&early, 0, p->rows, 0, TILE_VECTORS, TILE_ADD, 1, p->a_k);
    if (late.depth > 0)
        multiply_range(&late, 0, p->rows, LATE, LATE_VECTORS, TILE_ADD, 1, p->a_k);
}

// y + a * b over n_columns columns, of which each row has a whole number of vectors; a is a block
// of scores. Rows from `row` on, which the columns of a before `first` do not reach.
static void multiply_scores(const product *p, int64_t row, int64_t end, int64_t n_columns)
{
    for (int64_t column = 0; column < n_columns; column += PANEL)
        if (n_columns - column > PANEL - LANES)
            multiply_range(p, row, end, column, TILE_VECTORS, TILE_ADD, QUERIES, 1);
        else
            for (int64_t c = column; c < n_columns; c += LANES)
                multiply_range(p, row, end, c, 1, TILE_ADD, QUERIES, 1);
}

// ---- rows and panels ----

// The row ROWS_AHEAD further on: rows of a head may lie so far apart that the processor does not
// see which comes next. `writes` is a constant where this is called.
OT_SIMD_INLINE void fetch_row(const float *row, const ot__heads *lies, int64_t size, bool writes)
{
    const float *x = row + ROWS_AHEAD * lies->position;

    for (int64_t e = 0; lies->element == 1 && e < size; e += CACHE_LINE) {
        if (writes)
            __builtin_prefetch(x + e, 1);
        else
            __builtin_prefetch(x + e);
    }
}

// n positions of `size` elements, times factor, as rows of `pitch` floats that end in zeros.
static void copy_positions(float *to, int64_t pitch, const float *from, const ot__heads *lies,
                           int64_t n, int64_t size, float factor)
{
    for (int64_t i = 0; i < n; i++, to += pitch) {
        const float *x = from + i * lies->position;

        fetch_row(x, lies, size, false);
        if (lies->element == 1) {
            OT_SIMD_LOOP
            for (int64_t e = 0; e < size; e++)
                to[e] = x[e] * factor;
        } else {
            for (int64_t e = 0; e < size; e++)
                to[e] = x[e * lies->element] * factor;
        }
        for (int64_t e = size; e < pitch; e++)
            to[e] = 0;
    }
}

static void store_positions(float *to, const ot__heads *lies, const float *from, int64_t pitch,
                            int64_t n, int64_t size, float factor)
{
    for (int64_t i = 0; i < n; i++, from += pitch) {
        float *y = to + i * lies->position;

        fetch_row(y, lies, size, true);
        if (lies->element == 1) {
            OT_SIMD_LOOP
            for (int64_t e = 0; e < size; e++)
                y[e] = from[e] * factor;
        } else {
            for (int64_t e = 0; e < size; e++)
                y[e * lies->element] = from[e] * factor;
        }
    }
}

static void scale_panel(float *panel, int64_t size, float factor)
{
    if (factor == 1)
        return;
    OT_SIMD_LOOP
    for (int64_t e = 0; e < size * PANEL; e++)
        panel[e] *= factor;
}

// n positions of a tensor, at most a panel, become lanes; the other lanes become 0.
static void read_panel(float *panel, float *copy, const float *from, const ot__heads *lies,
                       int64_t n, int64_t size, float factor)
{
    const int64_t pitch = pitch_of(size);

    if (lies->element == 1 && n == PANEL) {
        for (int64_t i = 0; i < n; i++)
            fetch_row(from + i * lies->position, lies, size, false);
        ot__transpose_floats(&OT_ISA_NAME(ot__moves), panel, PANEL, from, lies->position, size,
                             PANEL);
        scale_panel(panel, size, factor);
        return;
    }
    copy_positions(copy, pitch, from, lies, n, size, factor);
    memset(copy + n * pitch, 0, (size_t)((PANEL - n) * pitch) * sizeof *copy);
    ot__transpose_floats(&OT_ISA_NAME(ot__moves), panel, PANEL, copy, pitch, size, PANEL);
}

// The first n lanes become positions of a tensor, times factor. The panel is used up.
static void store_panel(float *to, const ot__heads *lies, float *panel, float *copy, int64_t n,
                        int64_t size, float factor)
{
    const int64_t pitch = pitch_of(size);

    if (lies->element == 1 && n == PANEL) {
        for (int64_t i = 0; i < n; i++)
            fetch_row(to + i * lies->position, lies, size, true);
        scale_panel(panel, size, factor);
        ot__transpose_floats(&OT_ISA_NAME(ot__moves), to, lies->position, panel, PANEL, PANEL,
                             size);
        return;
    }
    ot__transpose_floats(&OT_ISA_NAME(ot__moves), copy, pitch, panel, PANEL, PANEL, size);
    store_positions(to, lies, copy, pitch, n, size, factor);
}

#endif
