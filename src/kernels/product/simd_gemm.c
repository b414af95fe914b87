// SPDX-License-Identifier: Apache-2.0
// Products in f32, compiled once per instruction set (OT_ISA).
//
// y is computed in tiles that stay in registers. For one block of k, `a` is copied tile row by tile
// row and `b` into panels of a tile's width, so that the innermost loop reads both in order.
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/simd.h"

#if OT_ISA_LEVEL == 2 // 28 sums, two vectors of b; 32 registers
enum { TILE_ROWS = 14, TILE_VECTORS = 2, DEPTH = 512, WIDTH = 256 };
#elif OT_ISA_LEVEL == 1    // 12 sums, two vectors of b, one of a; 16 registers
enum { TILE_ROWS = 6, TILE_VECTORS = 2, DEPTH = 256, WIDTH = 256 };
#elif defined(__aarch64__) // 24 sums, four vectors of b; 32 registers
enum { TILE_ROWS = 6, TILE_VECTORS = 4, DEPTH = 256, WIDTH = 256 };
#else
enum { TILE_ROWS = 4, TILE_VECTORS = 2, DEPTH = 256, WIDTH = 256 };
#endif
enum {
    LANES = OT_VECTOR_LANES,
    TILE_COLUMNS = TILE_VECTORS * LANES,
    A_ROW = DEPTH + 16, // rows of `a` in scratch must not fall on the same lines of the cache
    A_FLOATS = TILE_ROWS * A_ROW,
};

// ---- the tile ----

// Where a tile's results go: y[row * y_row + vector] or, at the borders and when y is transposed,
// into `buffer` of TILE_ROWS rows.
typedef struct target {
    float *y;
    int64_t y_row;
    float alpha;
    bool accumulates;
} target;

// (rows, depth) * (depth, vectors) of copied operands. `a` has a_row floats between rows and a_k
// between columns. All arguments but pointers and depth are constants where it is called.
OT_SIMD_INLINE void tile(const target *t, const float *a, const float *b, int64_t depth, int rows,
                         int vectors, int64_t a_row, int64_t a_k)
{
    ot__vector sum[TILE_ROWS][TILE_VECTORS];

    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = (ot__vector){0};
    for (int64_t k = 0; k < depth; k++) {
        ot__vector column[TILE_VECTORS];

        OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            column[v] = ot__vector_load(b + v * LANES);
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] += a[i * a_row] * column[v];
        a += a_k;
        b += TILE_COLUMNS;
    }
    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
        float *y = t->y + i * t->y_row + v * LANES;
        ot__vector value = t->alpha * sum[i][v];

        if (t->accumulates)
            value += ot__vector_load(y);
        ot__vector_store(y, value);
    }
}

// The tile of `rows` rows, which the compiler must know to keep the sums in registers.
OT_SIMD_INLINE void tile_of(int rows, const target *t, const float *a, const float *b,
                            int64_t depth, int vectors, int64_t a_row, int64_t a_k)
{
    switch (rows) {
#if OT_ISA_LEVEL == 2
    case 14:
        tile(t, a, b, depth, 14, vectors, a_row, a_k);
        break;
    case 13:
        tile(t, a, b, depth, 13, vectors, a_row, a_k);
        break;
    case 12:
        tile(t, a, b, depth, 12, vectors, a_row, a_k);
        break;
    case 11:
        tile(t, a, b, depth, 11, vectors, a_row, a_k);
        break;
    case 10:
        tile(t, a, b, depth, 10, vectors, a_row, a_k);
        break;
    case 9:
        tile(t, a, b, depth, 9, vectors, a_row, a_k);
        break;
    case 8:
        tile(t, a, b, depth, 8, vectors, a_row, a_k);
        break;
    case 7:
        tile(t, a, b, depth, 7, vectors, a_row, a_k);
        break;
#endif
#if OT_ISA_LEVEL > 0 || defined(__aarch64__)
    case 6:
        tile(t, a, b, depth, 6, vectors, a_row, a_k);
        break;
    case 5:
        tile(t, a, b, depth, 5, vectors, a_row, a_k);
        break;
#endif
    case 4:
        tile(t, a, b, depth, 4, vectors, a_row, a_k);
        break;
    case 3:
        tile(t, a, b, depth, 3, vectors, a_row, a_k);
        break;
    case 2:
        tile(t, a, b, depth, 2, vectors, a_row, a_k);
        break;
    default:
        tile(t, a, b, depth, 1, vectors, a_row, a_k);
        break;
    }
}

// By the order `a` was copied in: rows one after the other, or columns.
static void tile_rows(int rows, int vectors, const target *t, const float *a, const float *b,
                      int64_t depth)
{
    if (vectors == 1)
        tile_of(rows, t, a, b, depth, 1, A_ROW, 1);
    else
        tile_of(rows, t, a, b, depth, TILE_VECTORS, A_ROW, 1);
}

static void tile_columns(int rows, int vectors, const target *t, const float *a, const float *b,
                         int64_t depth)
{
    if (vectors == 1)
        tile_of(rows, t, a, b, depth, 1, 1, TILE_ROWS);
    else
        tile_of(rows, t, a, b, depth, TILE_VECTORS, 1, TILE_ROWS);
}

// ---- copying the operands ----

static void copy_a(float *to, const float *a, const ot__gemm *g, int64_t row, int64_t rows,
                   int64_t k, int64_t depth)
{
    a += row * g->a_row + k * g->a_column;
    if (g->a_column == 1) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * A_ROW, a + i * g->a_row, (size_t)depth * sizeof(*to));
    } else if (g->a_row == 1 && rows == TILE_ROWS) {
        for (int64_t p = 0; p < depth; p++)
            for (int i = 0; i < TILE_ROWS; i++)
                to[p * TILE_ROWS + i] = a[p * g->a_column + i];
    } else {
        for (int64_t p = 0; p < depth; p++)
            for (int64_t i = 0; i < rows; i++)
                to[p * TILE_ROWS + i] = a[i * g->a_row + p * g->a_column];
    }
}

// Panel of `columns` columns whose rows of k lie one after the other.
static void copy_b_across(float *to, const float *b, int64_t b_row, int64_t columns, int64_t depth)
{
    for (int64_t p = 0; p < depth; p++) {
        float *row = to + p * TILE_COLUMNS;

        if (columns == TILE_COLUMNS) {
            for (int v = 0; v < TILE_VECTORS; v++)
                ot__vector_store(row + v * LANES, ot__vector_load(b + p * b_row + v * LANES));
        } else {
            for (int64_t j = 0; j < TILE_COLUMNS; j++)
                row[j] = j < columns ? b[p * b_row + j] : 0;
        }
    }
}

// The same where each column's k lie one after the other.
static void copy_b_along(float *to, const float *b, int64_t b_column, int64_t columns,
                         int64_t depth)
{
    const int64_t square = depth / 4 * 4;

    for (int64_t j = 0; j + 4 <= columns; j += 4) {
        for (int64_t p = 0; p < square; p += 4)
            ot__transpose4(to + p * TILE_COLUMNS + j, TILE_COLUMNS, b + j * b_column + p, b_column);
        for (int64_t p = square; p < depth; p++)
            for (int64_t l = j; l < j + 4; l++)
                to[p * TILE_COLUMNS + l] = b[l * b_column + p];
    }
    for (int64_t j = columns / 4 * 4; j < TILE_COLUMNS; j++)
        for (int64_t p = 0; p < depth; p++)
            to[p * TILE_COLUMNS + j] = j < columns ? b[j * b_column + p] : 0;
}

static void copy_b(float *to, const float *b, const ot__gemm *g, int64_t column, int64_t column_end,
                   int64_t k, int64_t depth)
{
    for (int64_t j = column; j < column_end; j += TILE_COLUMNS, to += depth * TILE_COLUMNS) {
        const int64_t columns = OT_MIN(column_end - j, (int64_t)TILE_COLUMNS);
        const float *from = b + k * g->b_row + j * g->b_column;

        if (g->b_column == 1)
            copy_b_across(to, from, g->b_row, columns, depth);
        else
            copy_b_along(to, from, g->b_column, columns, depth);
    }
}

// ---- blocks ----

// From a whole tile in `buffer` what belongs to y.
static void spill(const ot__gemm_plan *plan, float *y, const float *buffer, int64_t rows,
                  int64_t columns, bool accumulates)
{
    if (plan->y_column == 1) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                float *to = y + i * plan->g.y_row + j;

                *to =
                    accumulates ? *to + buffer[i * TILE_COLUMNS + j] : buffer[i * TILE_COLUMNS + j];
            }
        return;
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) {
            float *to = y + i * plan->g.y_row + j * plan->y_column;

            *to = accumulates ? *to + buffer[i * TILE_COLUMNS + j] : buffer[i * TILE_COLUMNS + j];
        }
}

// One row of tiles: `rows` rows of a against all copied panels of b.
static void multiply_tile_row(const ot__gemm_plan *plan, const ot__gemm_part *part, float *y,
                              const float *a, const float *b, int64_t rows, int64_t depth,
                              bool accumulates)
{
    float buffer[TILE_ROWS * TILE_COLUMNS];
    const bool by_rows = plan->g.a_column == 1;

    for (int64_t j = part->column; j < part->column_end;
         j += TILE_COLUMNS, b += depth * TILE_COLUMNS) {
        const int64_t columns = OT_MIN(part->column_end - j, (int64_t)TILE_COLUMNS);
        float *to = y + j * plan->y_column;
        const bool fits = plan->y_column == 1 && (columns == TILE_COLUMNS || columns == LANES);
        const target t = {fits ? to : buffer, fits ? plan->g.y_row : TILE_COLUMNS,
                          (float)plan->g.alpha, fits && accumulates};

        (by_rows ? tile_rows : tile_columns)((int)rows, columns <= LANES ? 1 : TILE_VECTORS, &t, a,
                                             b, depth);
        if (!fits)
            spill(plan, to, buffer, rows, columns, accumulates);
    }
}

// What is added to a line of y that is contiguous in memory, and the function applied to it.
static void finish_line(const ot__gemm_plan *plan, const ot__gemm_data *data, float *y,
                        const float *c, int64_t c_step, int64_t n)
{
    const float *x[OT__TILE_INPUTS] = {y, NULL};
    const float beta = (float)plan->g.beta;

    if (c != NULL && c_step == 1) {
        OT_SIMD_LOOP
        for (int64_t j = 0; j < n; j++)
            y[j] += beta * c[j];
    } else if (c != NULL) {
        for (int64_t j = 0; j < n; j++)
            y[j] += beta * c[j * c_step];
    }
    if (data->epilogue.function == NULL)
        return;
    if (data->epilogue.other != NULL)
        x[1] = data->epilogue.other + (y - data->y);
    data->epilogue.function(y, x, n, data->epilogue.attrs);
}

static void finish_part(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *p)
{
    const ot__gemm *g = &plan->g;
    const float *c = data->c;

    if (c == NULL && data->epilogue.function == NULL)
        return;
    if (plan->y_column == 1) {
        for (int64_t i = p->row; i < p->row_end; i++)
            finish_line(plan, data, data->y + i * g->y_row + p->column,
                        c ? c + i * g->c_row + p->column * g->c_column : NULL, g->c_column,
                        p->column_end - p->column);
        return;
    }
    for (int64_t j = p->column; j < p->column_end; j++)
        finish_line(plan, data, data->y + j * plan->y_column + p->row,
                    c ? c + j * g->c_column + p->row * g->c_row : NULL, g->c_row,
                    p->row_end - p->row);
}

// The columns of one block, all rows of the part, all of k.
static void block(const ot__gemm_plan *plan, const ot__gemm_data *data, const ot__gemm_part *part,
                  float *scratch)
{
    const ot__gemm *g = &plan->g;
    const float *a = plan->is_swapped ? data->b : data->a,
                *b = plan->is_swapped ? data->a : data->b;
    const int64_t rows = part->row_end - part->row;
    const int64_t n_tiles = (rows + TILE_ROWS - 1) / TILE_ROWS,
                  n_depths = (g->k + DEPTH - 1) / DEPTH;
    float *a_copy = scratch, *b_copy = scratch + A_FLOATS;

    for (int64_t d = 0; d < n_depths; d++) {
        const int64_t k = g->k * d / n_depths, depth = g->k * (d + 1) / n_depths - k;

        copy_b(b_copy, b, g, part->column, part->column_end, k, depth);
        for (int64_t t = 0; t < n_tiles; t++) {
            const int64_t row = part->row + rows * t / n_tiles;
            const int64_t row_end = part->row + rows * (t + 1) / n_tiles;

            copy_a(a_copy, a, g, row, row_end - row, k, depth);
            multiply_tile_row(plan, part, data->y + row * g->y_row, a_copy, b_copy, row_end - row,
                              depth, d > 0 || data->accumulates);
        }
    }
    finish_part(plan, data, part);
}

static void run_part(const ot__gemm_plan *plan, const ot__gemm_data *data,
                     const ot__gemm_part *part, float *scratch)
{
    ot__gemm_part p = *part;

    for (int64_t j = part->column; j < part->column_end; j += WIDTH) {
        p.column = j;
        p.column_end = OT_MIN(j + WIDTH, part->column_end);
        block(plan, data, &p, scratch);
    }
}

const ot__gemm_kernel OT_ISA_NAME(ot__gemm_kernel) = {
    .run = run_part,
    .lanes = LANES,
    .tile_rows = TILE_ROWS,
    .tile_columns = TILE_COLUMNS,
    .depth = DEPTH,
    .width = WIDTH,
};
