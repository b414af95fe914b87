// SPDX-License-Identifier: Apache-2.0
// Products in f32, also of f16 and bf16, compiled once per instruction set (OT_ISA).
//
// y is computed in tiles that stay in registers. For one block of k, `a` is copied tile row by tile
// row and `b` into panels of a tile's width, so that the innermost loop reads both in order.
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/simd_floats.h"

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
    STAGED_ROWS = 32 * TILE_ROWS,
};

#include "kernels/product/simd_gemm_copy.h"

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

// One row of tiles: `rows` rows of a against n_columns columns of b, in copied panels.
static void multiply_tile_row(const ot__gemm_plan *plan, float *y, const float *a, const float *b,
                              int64_t rows, int64_t n_columns, int64_t depth, bool accumulates)
{
    float buffer[TILE_ROWS * TILE_COLUMNS];
    const bool by_rows = plan->g.a_column == 1;

    for (int64_t j = 0; j < n_columns; j += TILE_COLUMNS, b += depth * TILE_COLUMNS) {
        const int64_t columns = OT_MIN(n_columns - j, (int64_t)TILE_COLUMNS);
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

// The rows of a part, and a block of its columns: y is its first element. The panels of b are
// copied unless they are there from the rows before.
static void multiply_block(const ot__gemm_plan *plan, const ot__gemm_data *data,
                           const ot__gemm_part *part, float *y, bool accumulates, bool has_panels,
                           float *scratch)
{
    const ot__gemm *g = &plan->g;
    const void *a = plan->is_swapped ? data->b : data->a, *b = plan->is_swapped ? data->a : data->b;
    const int64_t rows = part->row_end - part->row, columns = part->column_end - part->column;
    const int64_t n_tiles = (rows + TILE_ROWS - 1) / TILE_ROWS,
                  n_depths = (g->k + DEPTH - 1) / DEPTH;
    float *a_copy = scratch, *b_copy = scratch + A_FLOATS;

    for (int64_t d = 0; d < n_depths; d++) {
        const int64_t k = g->k * d / n_depths, depth = g->k * (d + 1) / n_depths - k;

        if (n_depths > 1 || !has_panels)
            copy_b(b_copy, b, g, part->column, part->column_end, k, depth);
        for (int64_t t = 0; t < n_tiles; t++) {
            const int64_t row = rows * t / n_tiles, row_end = rows * (t + 1) / n_tiles;

            copy_a(a_copy, a, g, part->row + row, row_end - row, k, depth);
            multiply_tile_row(plan, y + row * g->y_row, a_copy, b_copy, row_end - row, columns,
                              depth, d > 0 || accumulates);
        }
    }
}

// ---- the ends of lines ----

enum { LINE = 512 }; // at most WIDTH and STAGED_ROWS

static size_t operand_size(ot_dtype type)
{
    return ot__dtype_is_narrow(type) ? sizeof(uint16_t) : sizeof(float);
}

// Elements at .. at + n - 1 of x, in `buffer` unless they are f32.
static const float *widened_line(const void *x, int64_t at, int64_t n, ot_dtype type, float *buffer)
{
    if (!ot__dtype_is_narrow(type))
        return (const float *)x + at;
    OT_ISA_NAME(ot__floats).widen[type](buffer, (const uint16_t *)x + at, n);
    return buffer;
}

// What is added to a line whose sums are complete, and the function applied to it. `at`: where the
// line is in y.
static void finish_line(const ot__gemm_plan *plan, const ot__gemm_data *data, float *line,
                        int64_t at, const void *c, int64_t c_step, int64_t n)
{
    float buffer[LINE];
    const float *x[OT__TILE_INPUTS] = {line, NULL};
    const float beta = (float)plan->g.beta;

    if (c != NULL && c_step == 1) {
        const float *addend = widened_line(c, 0, n, plan->g.c_type, buffer);

        OT_SIMD_LOOP
        for (int64_t j = 0; j < n; j++)
            line[j] += beta * addend[j];
    } else if (c != NULL) {
        for (int64_t j = 0; j < n; j++)
            line[j] += beta * *widened_line(c, j * c_step, 1, plan->g.c_type, buffer);
    }
    if (data->epilogue.function == NULL)
        return;
    if (data->epilogue.other != NULL)
        x[1] = widened_line(data->epilogue.other, at, n, plan->g.y_type, buffer);
    data->epilogue.function(line, x, n, data->epilogue.attrs);
}

// A line of a part that is contiguous in y: number i, of its rows or, when transposed, columns.
typedef struct line {
    int64_t at, n; // in y
    const void *c; // its first addend
    int64_t c_step;
} line;

static line output_line(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *p, int64_t i)
{
    const ot__gemm *g = &plan->g;
    const bool across = plan->y_column == 1;
    const int64_t row = across ? p->row + i : p->row, column = across ? p->column : p->column + i;
    const int64_t c_at = row * g->c_row + column * g->c_column;

    return (line){
        .at = row * g->y_row + column * plan->y_column,
        .n = across ? p->column_end - p->column : p->row_end - p->row,
        .c =
            data->c == NULL ? NULL : (const char *)data->c + (size_t)c_at * operand_size(g->c_type),
        .c_step = across ? g->c_column : g->c_row,
    };
}

static int64_t count_lines(const ot__gemm_plan *plan, const ot__gemm_part *p)
{
    return plan->y_column == 1 ? p->row_end - p->row : p->column_end - p->column;
}

static void finish_part(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *p)
{
    if (data->c == NULL && data->epilogue.function == NULL)
        return;
    for (int64_t i = 0; i < count_lines(plan, p); i++) {
        const line l = output_line(plan, data, p, i);

        finish_line(plan, data, (float *)data->y + l.at, l.at, l.c, l.c_step, l.n);
    }
}

// ---- parts: where the results are rounded, they wait for it in scratch ----

static void load_staged(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *p, float *staged, int64_t pitch)
{
    for (int64_t i = 0; i < count_lines(plan, p); i++) {
        const line l = output_line(plan, data, p, i);
        float *to = staged + i * pitch;
        const float *from = widened_line(data->y, l.at, l.n, plan->g.y_type, to);

        if (from != to)
            memcpy(to, from, (size_t)l.n * sizeof *to);
    }
}

static void store_staged(const ot__gemm_plan *plan, const ot__gemm_data *data,
                         const ot__gemm_part *p, float *staged, int64_t pitch)
{
    const ot_dtype type = plan->g.y_type;

    for (int64_t i = 0; i < count_lines(plan, p); i++) {
        const line l = output_line(plan, data, p, i);
        float *from = staged + i * pitch;

        finish_line(plan, data, from, l.at, l.c, l.c_step, l.n);
        if (ot__dtype_is_narrow(type))
            OT_ISA_NAME(ot__floats).narrow[type]((uint16_t *)data->y + l.at, from, l.n);
        else
            memcpy((float *)data->y + l.at, from, (size_t)l.n * sizeof *from);
    }
}

static void run_staged_block(const ot__gemm_plan *plan, const ot__gemm_data *data,
                             const ot__gemm_part *part, float *scratch)
{
    const int64_t rows = part->row_end - part->row;
    const int64_t n_pieces = (rows + plan->staged_rows - 1) / plan->staged_rows;
    const bool across = plan->y_column == 1;
    const int64_t columns = part->column_end - part->column;
    const int64_t pitch = across ? columns : plan->staged_rows;
    float *staged = scratch + plan->stage_at;
    ot__gemm_plan to_stage = *plan;

    to_stage.g.y_row = across ? pitch : 1;
    to_stage.y_column = across ? 1 : pitch;
    for (int64_t i = 0; i < n_pieces; i++) {
        const ot__gemm_part piece = {part->row + rows * i / n_pieces,
                                     part->row + rows * (i + 1) / n_pieces, part->column,
                                     part->column_end};

        if (data->accumulates)
            load_staged(plan, data, &piece, staged, pitch);
        multiply_block(&to_stage, data, &piece, staged, data->accumulates, i > 0, scratch);
        store_staged(plan, data, &piece, staged, pitch);
    }
}

static void run_part(const ot__gemm_plan *plan, const ot__gemm_data *data,
                     const ot__gemm_part *part, float *scratch)
{
    ot__gemm_part p = *part;

    for (int64_t j = part->column; j < part->column_end; j += WIDTH) {
        p.column = j;
        p.column_end = OT_MIN(j + WIDTH, part->column_end);
        if (plan->staged_rows > 0) {
            run_staged_block(plan, data, &p, scratch);
            continue;
        }
        multiply_block(plan, data, &p,
                       (float *)data->y + p.row * plan->g.y_row + p.column * plan->y_column,
                       data->accumulates, false, scratch);
        finish_part(plan, data, &p);
    }
}

const ot__gemm_kernel OT_ISA_NAME(ot__gemm_kernel) = {
    .run = run_part,
    .lanes = LANES,
    .tile_rows = TILE_ROWS,
    .tile_columns = TILE_COLUMNS,
    .depth = DEPTH,
    .width = WIDTH,
    .staged_rows = STAGED_ROWS,
};
