// SPDX-License-Identifier: Apache-2.0
// Products in f32, also of f16 and bf16, compiled once per instruction set (OT_ISA).
//
// y is computed in tiles that stay in registers, block by block of k and of the columns. Rows of
// `a` and of `b` are read where they lie; what cannot be read so, or is read often, is copied: `b`
// into panels as wide as a tile, by the first row of tiles while it multiplies, and `a`, where its
// columns are contiguous, a few tiles at a time. Nothing of this changes the order of a sum, so
// none of it changes a bit. Where lanes go along k (simd_gemm_dots.h) the order is another, which
// m, n, k and the strides alone decide on.
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/simd_floats.h"

// MAX_ROWS of MAX_VECTORS: as many sums as registers hold beside the vectors of b and one of a.
// Tiles of one vector have ROWS_OF_ONE rows, without which there would be fewer sums than
// multiplications under way; such tiles read a where it lies. Blocks of b are DEPTH rows of WIDTH
// columns, or COLUMNS_DEPTH of COLUMNS_WIDTH where columns of `a` are copied; where y has fewer
// columns those of whose `a` rows are read are deeper, up to MOST_DEPTH; where they would take less
// than half of the second cache, they are wider, up to MOST_WIDTH.
#if OT_ISA_LEVEL == 2 // 32 registers
#define MAX_ROWS 8
#define ROWS_OF_ONE 8
#define MAX_VECTORS 3
enum { DEPTH = 512, WIDTH = 256, COLUMNS_DEPTH = 256, COLUMNS_WIDTH = 512, MOST_DEPTH = 512 };
#elif OT_ISA_LEVEL == 1 // 16 registers
#define MAX_ROWS 6
#define ROWS_OF_ONE 12
#define MAX_VECTORS 2
enum { DEPTH = 256, WIDTH = 256, COLUMNS_DEPTH = 192, COLUMNS_WIDTH = 512, MOST_DEPTH = 1024 };
#elif defined(__aarch64__) // 32 registers
#define MAX_ROWS 6
#define ROWS_OF_ONE 6
#define MAX_VECTORS 4
enum { DEPTH = 256, WIDTH = 256, COLUMNS_DEPTH = 128, COLUMNS_WIDTH = 256, MOST_DEPTH = 256 };
#else
#define MAX_ROWS 4
#define ROWS_OF_ONE 4
#define MAX_VECTORS 2
enum { DEPTH = 256, WIDTH = 256, COLUMNS_DEPTH = 128, COLUMNS_WIDTH = 256, MOST_DEPTH = 256 };
#endif
enum {
    TILE_ROWS = MAX_ROWS,
    MOST_ROWS = ROWS_OF_ONE,
    TILE_VECTORS = MAX_VECTORS,
    LANES = OT_VECTOR_LANES,
    TILE_COLUMNS = TILE_VECTORS * LANES,
    PADDING = 16, // rows of `a` in scratch must not fall on the same lines of the cache
    A_ROW = DEPTH + PADDING,
    MOST_WIDTH = OT_ISA_LEVEL == 2 ? 384 : WIDTH,
    DOTS_DEPTH = 512, // with which the few lines of simd_gemm_dots.h stay in the first cache
    DOTS_ROW = DOTS_DEPTH + PADDING,
    A_GROUP = 8, // tiles whose columns of `a` are copied together, with
    GROUP_ROWS = A_GROUP * TILE_ROWS,
    FEW_PANELS = 2,      // which do not pay for copying columns of `a`
    FEW_TILES = 4,       // rows of them that do not pay for copying `b`
    DEPTH_TO_FETCH = 32, // with which lines of y that are fetched come before they are written
    TILES_AHEAD = 2,     // whose lines of y come in time with less
    ROWS_AHEAD = 8,      // of `b` that are fetched while it is copied, and
    FETCHES_PANELS = OT_ISA_LEVEL == 2, // while it is read
    CACHE_LINE = 16,                    // floats
    STAGED_ROWS = 32 * TILE_ROWS,
};

// A block of b as tiles read it, in n_panels panels of whole vectors: the first n_wider have one
// more than the others.
typedef struct block {
    int64_t columns, n_panels, vectors, n_wider, k, depth;
    float *copy;
    const float *origin; // where whole panels are read; NULL: in the copy
    bool copies;         // them meanwhile
} block;

static int64_t panel_vector(const block *x, int64_t panel)
{
    return panel * x->vectors + OT_MIN(panel, x->n_wider);
}

#include "kernels/product/simd_gemm_copy.h"
#include "kernels/product/simd_gemm_dots.h"
#include "kernels/product/simd_gemm_tile.h"

// ---- the ends of lines ----

enum { LINE = 512 }; // at least MOST_WIDTH, COLUMNS_WIDTH and STAGED_ROWS

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

// Lines first .. last - 1.
static void finish_lines(const ot__gemm_plan *plan, const ot__gemm_data *data,
                         const ot__gemm_part *p, int64_t first, int64_t last)
{
    if (data->c == NULL && data->epilogue.function == NULL)
        return;
    for (int64_t i = first; i < last; i++) {
        const line l = output_line(plan, data, p, i);

        finish_line(plan, data, (float *)data->y + l.at, l.at, l.c, l.c_step, l.n);
    }
}

// ---- blocks ----

// From a whole tile in `buffer` what belongs to a y that is transposed: its columns are contiguous.
static void spill_columns(const ot__gemm_plan *plan, float *y, const float *buffer, int64_t rows,
                          int64_t columns, bool accumulates)
{
    const int64_t squares = accumulates ? 0 : columns / 4 * 4, in_squares = rows / 4 * 4;

    for (int64_t j = 0; j < squares; j += 4)
        for (int64_t i = 0; i < in_squares; i += 4)
            ot__transpose4(y + j * plan->y_column + i, plan->y_column,
                           buffer + i * TILE_COLUMNS + j, TILE_COLUMNS);
    for (int64_t j = 0; j < columns; j++) {
        float *to = y + j * plan->y_column;

        for (int64_t i = j < squares ? in_squares : 0; i < rows; i++)
            to[i] =
                accumulates ? to[i] + buffer[i * TILE_COLUMNS + j] : buffer[i * TILE_COLUMNS + j];
    }
}

// From a whole tile in `buffer` what belongs to y.
static void spill(const ot__gemm_plan *plan, float *y, const float *buffer, int64_t rows,
                  int64_t columns, bool accumulates)
{
    if (plan->y_column != 1) {
        spill_columns(plan, y, buffer, rows, columns, accumulates);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *to = y + i * plan->g.y_row + j;

            *to = accumulates ? *to + buffer[i * TILE_COLUMNS + j] : buffer[i * TILE_COLUMNS + j];
        }
}

// Panels from `p` on that are as wide as it and whole, or not; one where y is transposed.
static int64_t count_alike(const ot__gemm_plan *plan, const block *x, int64_t p)
{
    const int64_t end = p < x->n_wider ? x->n_wider : x->n_panels;
    const bool ends_whole = panel_vector(x, end) * LANES <= x->columns;

    return plan->y_column != 1 ? 1 : OT_MAX(end - p - !ends_whole, 1);
}

// One row of tiles: `rows` rows of a against a block of b.
static void multiply_tile_row(const ot__gemm_plan *plan, float *y, operands o, int64_t rows,
                              const block *x, bool accumulates)
{
    float buffer[MOST_ROWS * TILE_COLUMNS];

    for (int64_t p = 0, n; p < x->n_panels; p += n) {
        const int64_t vector = panel_vector(x, p),
                      width = (panel_vector(x, p + 1) - vector) * LANES;
        const int64_t j = vector * LANES, columns = OT_MIN(x->columns - j, width);
        const bool is_whole = columns == width, is_read = x->origin != NULL && is_whole;
        const bool fits = plan->y_column == 1 && is_whole;
        float *to = y + j * plan->y_column;
        const target t = {fits ? to : buffer, fits ? plan->g.y_row : TILE_COLUMNS,
                          (float)plan->g.alpha, fits && accumulates};

        n = count_alike(plan, x, p);
        o.copy = x->copy + j * x->depth;
        o.b = is_read ? x->origin + j : o.copy;
        o.b_k = is_read ? plan->g.b_row : width;
        o.b_panel = is_read ? width : width * x->depth;
        (is_read && x->copies ? multiply_copying : multiply)((int)rows, (int)(width / LANES), n, &t,
                                                             &o);
        if (!fits)
            spill(plan, to, buffer, rows, columns, accumulates);
    }
}

static block gemm_block_of(const ot__gemm_part *part, int64_t k, int64_t depth, float *copy)
{
    const int64_t columns = part->column_end - part->column;
    const int64_t n_vectors = (columns + LANES - 1) / LANES;
    const int64_t n_panels = (n_vectors + TILE_VECTORS - 1) / TILE_VECTORS;

    return (block){.columns = columns,
                   .n_panels = n_panels,
                   .vectors = n_vectors / n_panels,
                   .n_wider = n_vectors % n_panels,
                   .k = k,
                   .depth = depth,
                   .copy = copy};
}

// The rows of a part against a block of b. After the last one their lines, which are in the cache,
// are finished, unless they wait for it.
static void gemm_multiply_rows(const ot__gemm_plan *plan, const ot__gemm_data *data,
                               const ot__gemm_part *part, float *y, block *x, bool accumulates,
                               float *a_copy)
{
    const ot__gemm *g = &plan->g;
    const void *a = plan->is_swapped ? data->b : data->a;
    const bool ends = x->k + x->depth == g->k && plan->staged_rows == 0 && plan->y_column == 1;
    const bool by_rows = g->a_column == 1;
    const int64_t group = by_rows ? 1 : A_GROUP;
    const bool reads_a = !ot__dtype_is_narrow(g->a_type) && (by_rows || x->n_panels <= FEW_PANELS);
    const bool is_tall = reads_a && x->n_panels == 1 && x->vectors == 1;
    const int64_t rows = part->row_end - part->row, tile_rows = is_tall ? MOST_ROWS : TILE_ROWS;
    const int64_t n_tiles = (rows + tile_rows - 1) / tile_rows;
    int64_t group_row = 0;

    for (int64_t t = 0; t < n_tiles; t++) {
        const int64_t row = rows * t / n_tiles, row_end = rows * (t + 1) / n_tiles;
        operands o = {.depth = x->depth};

        if (reads_a) {
            o.a = (const float *)a + (part->row + row) * g->a_row + x->k * g->a_column;
            o.a_row = g->a_row;
            o.a_k = g->a_column;
        } else {
            if (t % group == 0) {
                group_row = row;
                copy_a(a_copy, plan->a_pitch, a, g, part->row + row,
                       rows * OT_MIN(t + group, n_tiles) / n_tiles - row, x);
            }
            o.a = a_copy + (row - group_row);
            o.a_row = by_rows ? plan->a_pitch : 1;
            o.a_k = by_rows ? 1 : plan->a_pitch;
        }
        multiply_tile_row(plan, y + row * g->y_row, o, row_end - row, x, accumulates);
        if (ends)
            finish_lines(plan, data, part, row, row_end);
        if (x->copies) {
            x->origin = NULL;
            x->copies = false;
        }
    }
}

// The rows of a part, and a block of its columns: y is its first element. The panels of b are
// copied unless they are there from the rows before.
static void multiply_block(const ot__gemm_plan *plan, const ot__gemm_data *data,
                           const ot__gemm_part *part, float *y, bool accumulates, bool has_panels,
                           float *scratch)
{
    const ot__gemm *g = &plan->g;
    const void *b = plan->is_swapped ? data->a : data->b;
    const int64_t n_depths = (g->k + plan->depth - 1) / plan->depth;
    const bool reads_b =
        !ot__dtype_is_narrow(g->b_type) && g->b_column == 1 && plan->staged_rows == 0;

    for (int64_t d = 0; d < n_depths; d++) {
        const int64_t k = g->k * d / n_depths, depth = g->k * (d + 1) / n_depths - k;
        block x = gemm_block_of(part, k, depth, scratch + plan->a_floats);

        if (reads_b) {
            x.origin = (const float *)b + k * g->b_row + part->column;
            x.copies = part->row_end - part->row > (int64_t)FEW_TILES * TILE_ROWS;
        }
        if (n_depths > 1 || !has_panels)
            copy_b(b, g, part->column, &x);
        gemm_multiply_rows(plan, data, part, y, &x, d > 0 || accumulates, scratch);
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

static void run_blocks(const ot__gemm_plan *plan, const ot__gemm_data *data,
                       const ot__gemm_part *part, float *scratch)
{
    const int64_t columns = part->column_end - part->column;
    const int64_t n_blocks = (columns + plan->width - 1) / plan->width,
                  n_vectors = (columns + LANES - 1) / LANES;
    ot__gemm_part p = *part;

    for (int64_t j = 0; j < n_blocks; j++) {
        p.column = part->column + n_vectors * j / n_blocks * LANES;
        p.column_end =
            OT_MIN(part->column + n_vectors * (j + 1) / n_blocks * LANES, part->column_end);
        if (plan->staged_rows > 0) {
            run_staged_block(plan, data, &p, scratch);
            continue;
        }
        multiply_block(plan, data, &p,
                       (float *)data->y + p.row * plan->g.y_row + p.column * plan->y_column,
                       data->accumulates, false, scratch);
        if (plan->y_column != 1)
            finish_lines(plan, data, &p, 0, count_lines(plan, &p));
    }
}

static void run_part(const ot__gemm_plan *plan, const ot__gemm_data *data,
                     const ot__gemm_part *part, float *scratch)
{
#if OT_VECTOR_LANES >= 8
    if (plan->by_dots) {
        run_dots(plan, data, part, scratch);
        finish_lines(plan, data, part, 0, count_lines(plan, part));
        return;
    }
#endif
    run_blocks(plan, data, part, scratch);
}

// ---- b packed before ----

// A power of two, so that panels share out evenly what has such a number of columns.
enum { PANEL_VECTORS = 2 };

static void pack_panel(float *to, const void *b, const ot__gemm *g)
{
    const block x = {.columns = g->n,
                     .n_panels = 1,
                     .vectors = (g->n + LANES - 1) / LANES,
                     .depth = g->k,
                     .copy = to};

    copy_b(b, g, 0, &x);
}

// Whole panels, or one that is not.
static void multiply_panels(float *y, int64_t y_row, const float *a, int64_t a_row,
                            const float *panels, const ot__gemm_panels *p)
{
    const int64_t n_tiles = (p->rows + TILE_ROWS - 1) / TILE_ROWS;
    const int64_t panel = (int64_t)PANEL_VECTORS * LANES, n_whole = p->columns / panel;
    const int64_t width = n_whole > 0 ? panel : (p->columns + LANES - 1) / LANES * LANES;
    const bool fits = n_whole > 0 || p->columns == width;
    float buffer[TILE_ROWS * PANEL_VECTORS * LANES];

    for (int64_t t = 0; t < n_tiles; t++) {
        const int64_t row = p->rows * t / n_tiles, rows = p->rows * (t + 1) / n_tiles - row;
        const operands o = {.a = a + row * a_row,
                            .b = panels,
                            .copy = buffer, // nothing is left there
                            .a_row = a_row,
                            .a_k = 1,
                            .b_k = width,
                            .b_panel = width * p->depth,
                            .depth = p->depth};
        float *to = y + row * y_row;
        const target out = {fits ? to : buffer, fits ? y_row : width, 1, fits && p->accumulates};

        multiply((int)rows, (int)(width / LANES), OT_MAX(n_whole, 1), &out, &o);
        for (int64_t i = 0; !fits && i < rows; i++)
            for (int64_t j = 0; j < p->columns; j++)
                to[i * y_row + j] =
                    buffer[i * width + j] + (p->accumulates ? to[i * y_row + j] : 0);
    }
}

const ot__gemm_kernel OT_ISA_NAME(ot__gemm_kernel) = {
    .run = run_part,
    .pack = pack_panel,
    .multiply = multiply_panels,
    .lanes = LANES,
    .dots_eighths = OT_ISA_LEVEL > 0 ? 7 : 0,
    .full_dots_depth = OT_ISA_LEVEL == 1 ? 512 : 0,
    .dots_depth = DOTS_DEPTH,
    .dots_row = DOTS_ROW,
    .tile_rows = TILE_ROWS,
    .tile_columns = TILE_COLUMNS,
    .panel_columns = PANEL_VECTORS * LANES,
    .depth = DEPTH,
    .most_depth = MOST_DEPTH,
    .columns_depth = COLUMNS_DEPTH,
    .columns_width = COLUMNS_WIDTH,
    .width = WIDTH,
    .most_width = MOST_WIDTH,
    .a_row = A_ROW,
    .group_rows = GROUP_ROWS,
    .staged_rows = STAGED_ROWS,
};
