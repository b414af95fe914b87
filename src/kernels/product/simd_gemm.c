// SPDX-License-Identifier: Apache-2.0
// Products in f32, also of f16 and bf16, compiled once per instruction set (OT_ISA).
//
// y is computed in tiles that stay in registers, by blocks of k. Rows of `a` and of `b` are read
// where they lie; what cannot be read so, or not well, is copied, `b` into panels as wide as a
// tile, by the first tile of a panel while it multiplies. Where rows of `a` are contiguous, tiles
// go along them: a row of tiles stays in the first cache, a block of b's panels in the second.
// Where its columns are, a block of `a` is copied tile by tile, before or by the tiles of the first
// panel, and stays in the second cache, and tiles go down one panel, which stays in the first; they
// go down, too, where no cache near holds `b`. What comes from far is fetched, or copied, by the
// tiles before (simd_gemm_walk.h). Nothing of this changes the order of a sum, so none of it
// changes a bit. Where lanes go along k (simd_gemm_dots.h), rows of b pass by (simd_gemm_rows.h) or
// b is sliced, the order is another, which on one processor m, n, k and the strides alone decide
// on.
#include "kernels/kernels.h"

#include "kernels/simd_floats.h"

// MAX_ROWS of USUAL_VECTORS: as many sums as registers hold beside the vectors of b and one of a.
// Tiles of one vector have ROWS_OF_ONE rows, without which there would be fewer sums than
// multiplications under way, those of MAX_VECTORS have ROWS_OF_WIDEST; where they have all columns,
// `a` is read once. Both read it where it lies. Blocks of b are DEPTH rows of WIDTH columns; where
// y has fewer columns they are deeper, up to MOST_DEPTH, or to DEPTH_OF_ONE where one tile has them
// all, and where they would take less than half of the second cache, wider, up to MOST_WIDTH. Where
// columns of `a` are contiguous, blocks are COLUMNS_DEPTH deep: with it a panel stays in the first
// cache. Where y is large they are LARGE_DEPTH deep.
#if OT_ISA_LEVEL == 2 // 32 registers
#define MAX_ROWS 8
#define ROWS_OF_ONE 12
#define ROWS_OF_WIDEST 6
#define MAX_VECTORS 4
enum { LARGE_DEPTH = 512 };
enum { DEPTH = 512, WIDTH = 256, COLUMNS_DEPTH = 192, MOST_DEPTH = 512, DEPTH_OF_ONE = 1024 };
#elif OT_ISA_LEVEL == 1 // 16 registers
#define MAX_ROWS 6
#define ROWS_OF_ONE 12
#define ROWS_OF_WIDEST MAX_ROWS
#define MAX_VECTORS 2
enum { LARGE_DEPTH = 384 };
enum { DEPTH = 512, WIDTH = 128, COLUMNS_DEPTH = 256, MOST_DEPTH = 1024, DEPTH_OF_ONE = 1024 };
#elif defined(__aarch64__) // 32 registers
#define MAX_ROWS 6
#define ROWS_OF_ONE 6
#define ROWS_OF_WIDEST 6
#define MAX_VECTORS 4
enum { LARGE_DEPTH = 128 };
enum { DEPTH = 256, WIDTH = 256, COLUMNS_DEPTH = 128, MOST_DEPTH = 256, DEPTH_OF_ONE = 256 };
#else
#define MAX_ROWS 4
#define ROWS_OF_ONE 4
#define ROWS_OF_WIDEST MAX_ROWS
#define MAX_VECTORS 2
enum { LARGE_DEPTH = 128 };
enum { DEPTH = 256, WIDTH = 256, COLUMNS_DEPTH = 128, MOST_DEPTH = 256, DEPTH_OF_ONE = 256 };
#endif
enum {
    TILE_ROWS = MAX_ROWS,
    MOST_ROWS = ROWS_OF_ONE,
    TILE_VECTORS = MAX_VECTORS,
    LANES = OT_VECTOR_LANES,
    TILE_COLUMNS = TILE_VECTORS * LANES,
    USUAL_VECTORS = OT_ISA_LEVEL == 2 ? 3 : TILE_VECTORS,
    PADDING = 16, // rows of `a` in scratch must not fall on the same lines of the cache
    A_ROW = DEPTH + PADDING,
    MOST_WIDTH = OT_ISA_LEVEL == 2 ? 384 : 256,
    DOTS_DEPTH = 512, // with which the few lines of simd_gemm_dots.h stay in the first cache
    DOTS_ROW = DOTS_DEPTH + PADDING,
    FEW_PANELS = 2,           // which do not pay for copying columns of `a`; nor do
    FEW_ROWS = 2 * TILE_ROWS, // and
    FEW_COLUMNS = 8,          // of it
    // Elements of k, and columns, with which tiles go along a block of b although `a` is copied.
    SHALLOW = OT_ISA_LEVEL == 1 ? 128 : 16,
    SHALLOW_COLUMNS = OT_ISA_LEVEL == 1 ? 768 : 0,
    ROWS_READING = OT_ISA_LEVEL == 2 ? INT32_MAX : TILE_ROWS, // that do not pay for copying `b`
    ROWS_CLASHING = OT_ISA_LEVEL == 2 ? 2 * TILE_ROWS : TILE_ROWS, // and where its rows clash
    ROWS_LOOSE = 64, // the same where they begin anywhere in a line, and b is large
    // At most, with which a b whose rows clash is sliced.
    ROWS_SLICED = OT_ISA_LEVEL == 2   ? 2 * TILE_ROWS
                  : OT_ISA_LEVEL == 1 ? TILE_ROWS
                                      : 0,
    ROWS_DOWN = OT_ISA_LEVEL == 2 ? 2048 : 128, // that wait while tiles go down the panels of b
    MOST_COPIED_ROWS = 512,                     // of `a`
    STAGED_WIDTH = 512,
    ROWS_AHEAD = 8,                     // of `b` that are fetched while it is copied, and
    FETCHES_PANELS = OT_ISA_LEVEL == 2, // while it is read from the second cache
    LINES_AT_ONCE = 12,                 // of y that a tile fetches
    CACHE_LINE = 16,                    // floats
    STAGED_ROWS = 32 * TILE_ROWS,
};

#include "kernels/product/simd_gemm_block.h"
#include "kernels/product/simd_gemm_copy.h"
#include "kernels/product/simd_gemm_dots.h"
#include "kernels/product/simd_gemm_lines.h"
#include "kernels/product/simd_gemm_packed.h"
#include "kernels/product/simd_gemm_rows.h"
#include "kernels/product/simd_gemm_spill.h"
#include "kernels/product/simd_gemm_tile.h"
#include "kernels/product/simd_gemm_walk.h"

// ---- blocks ----

// n tiles: of `rows` rows of a each, which are in o, one below the other, against panel p of a
// block of b; or of the same rows against panels p .. p + n - 1, which are alike. Where y is
// transposed, a strip of rows.
static void multiply_gemm_tiles(const ot__gemm_plan *plan, float *y, operands *o, int64_t rows,
                                const block *x, int64_t p, int64_t n, bool accumulates)
{
    float buffer[STRIP_FLOATS];
    const int64_t width = panel_width(x, p), j = panel_column(x, p);
    const int64_t columns = OT_MIN(x->columns - j, width);
    const int64_t done = panel_vector(x, p) * LANES - j; // columns that are the panel's before, too
    const bool is_whole = columns == width, is_read = x->origin != NULL && is_whole;
    const bool fits = plan->y_column == 1 && is_whole && !(accumulates && done > 0);
    const bool is_near = (plan->a_rows > 0 && !is_read) || width == LANES;
    const panel_kind kind = is_read && x->copies     ? COPIED
                            : o->a_copy != NULL      ? COPYING_A
                            : o->next.every > 0      ? COPYING_NEXT
                            : o->walk.at != NULL     ? FETCHING
                            : x->depth < SHORT_DEPTH ? SHORT
                            : is_near                ? NEAR
                                                     : FAR;
    const int64_t down = plan->goes_down ? rows * plan->g.y_row : 0;
    float *to = y + j * plan->y_column;
    target t = {.y = to,
                .y_row = fits ? plan->g.y_row : width,
                .next = plan->goes_down ? down : width,
                .alpha = (float)plan->g.alpha,
                .accumulates = fits && accumulates,
                .fetches = plan->fetches_lines};

    o->copy = panel_copy(x, p);
    o->panel_ahead = plan->fetches_panels && p + 1 < x->n_panels
                         ? panel_column(x, p + 1) - panel_column(x, p)
                         : 0;
    o->b = is_read ? x->origin + j : o->copy;
    o->b_k = is_read ? plan->g.b_row : width;
    o->b_next = plan->goes_down ? 0 : is_read ? width : width * x->depth;
    if (fits) {
        multiply(rows, width / LANES, n, &t, o, kind);
        return;
    }
    for (; n > 0; n--, to += down) {
        t.y = buffer;
        multiply_strip(&t, o, rows, width / LANES, kind);
        spill(plan, to + done * plan->y_column, buffer + done, width, rows, columns - done,
              accumulates);
    }
}

// y is complete, and where its lines are finished at once.
static bool finishes_after(const ot__gemm_plan *plan, const block *x)
{
    return x->k + x->depth == plan->g.k && plan->staged_rows == 0 && plan->y_column == 1;
}

// The most rows that tiles of every panel have.
static int64_t tile_height(const ot__gemm_plan *plan, const block *x)
{
    return plan->a_floats > 0 ? TILE_ROWS : tallest(plan->g.a_row, most_vectors(x));
}

// The rows of a part against a block of b, row of tiles by row of tiles. After the last block their
// lines, which are in the cache, are finished, if y is where they are complete.
static void multiply_along(const ot__gemm_plan *plan, const ot__gemm_data *data,
                           const ot__gemm_part *part, float *y, block *x, bool accumulates,
                           float *a_copy)
{
    const ot__gemm *g = &plan->g;
    const void *a = plan->is_swapped ? data->b : data->a;
    const bool by_rows = g->a_column == 1, reads_a = plan->a_floats == 0;
    const bool is_strip = reads_a && plan->y_column != 1;
    const int64_t rows = part->row_end - part->row;
    const int64_t height = is_strip ? strip_rows(g->a_row, most_vectors(x)) : tile_height(plan, x);
    const int64_t n_tiles = (rows + height - 1) / height;

    for (int64_t t = 0; t < n_tiles; t++) {
        const int64_t row = is_strip ? t * height : rows * t / n_tiles;
        const int64_t row_end = is_strip ? OT_MIN(row + height, rows) : rows * (t + 1) / n_tiles;
        operands o = {.a = a_copy,
                      .a_row = by_rows ? A_ROW : 1,
                      .a_k = by_rows ? 1 : TILE_ROWS,
                      .depth = x->depth};

        if (reads_a) {
            o.a = (const float *)a + (part->row + row) * g->a_row + x->k * g->a_column;
            o.a_row = g->a_row;
            o.a_k = g->a_column;
            o.ahead_next = 2 * CACHE_LINE;
        } else if (by_rows) {
            copy_a_rows(a_copy, a, g, part->row + row, row_end - row, x);
        } else {
            copy_a_columns(a_copy, a, g, part->row + row, part->row_end, &(tile_rows){.end = 1}, x);
        }
        if (plan->walks_a && x->depth >= SHORT_DEPTH && t + 1 < n_tiles)
            o.walk = walk_below(&o, row_end - row,
                                is_strip ? strip_tile(g->a_row, row_end - row, x->vectors)
                                         : row_end - row);
        for (int64_t p = 0, n; p < x->n_panels; p += n) {
            n = o.walk.at != NULL ? 1 : count_alike(plan, x, p);
            multiply_gemm_tiles(plan, y + row * g->y_row, &o, row_end - row, x, p, n, accumulates);
            o.walk.at = NULL;
        }
        if (finishes_after(plan, x))
            finish_lines(plan, data, part, row, row_end);
        if (x->copies) {
            x->origin = NULL;
            x->copies = false;
        }
    }
}

// What tiles do not copy of the columns of `a`: the first tile, which may copy b, and those at the
// end that have less than a whole one's rows behind them. Tiles 1 .. end - 1 are not copied yet.
static int64_t copy_a_ends(float *a_copy, const void *a, const ot__gemm *g,
                           const ot__gemm_part *part, const tile_rows *tiles, const block *x)
{
    const int64_t rows = part->row_end - part->row;
    tile_rows first = *tiles, last = *tiles;

    first.end = tiles->first + 1;
    last.first = tiles->end;
    while (last.first > first.end && tile_row(tiles, last.first - 1) + TILE_ROWS > rows)
        last.first--;
    copy_a_columns(a_copy, a, g, part->row, part->row_end, &first, x);
    copy_a_columns(a_copy + (last.first - tiles->first) * TILE_ROWS * x->depth, a, g, part->row,
                   part->row_end, &last, x);
    return last.first;
}

// The same panel by panel: tiles on their way down one after the other, with the copy of their rows
// of `a`, of which those before tile `uncopied` copy theirs at the first panel.
typedef struct descent {
    const ot__gemm_plan *plan;
    const ot__gemm_part *part;
    const void *a;
    const float *b; // where it is read
    float *y, *a_copy;
    tile_rows tiles;
    int64_t uncopied;
    bool accumulates;
} descent;

// Panel p, which the first tile may copy. The others copy the next, or fetch it.
static void descend(const descent *d, block *panel, int64_t p, const panel_ahead *ahead,
                    next_panel next)
{
    const ot__gemm *g = &d->plan->g;
    const tile_rows *tiles = &d->tiles;
    const int64_t tile_floats = TILE_ROWS * panel->depth, first = tiles->first + panel->copies;

    for (int64_t t = tiles->first, n; t < tiles->end; t += n) {
        const int64_t row = tile_row(tiles, t), height = tile_row(tiles, t + 1) - row;
        const bool is_first = t == tiles->first, copies_a = p == 0 && !is_first && t < d->uncopied;
        float *a_copy = d->a_copy + (t - tiles->first) * tile_floats;
        operands o = {.a = a_copy,
                      .a_row = 1,
                      .a_k = TILE_ROWS,
                      .a_next = tile_floats,
                      .depth = panel->depth,
                      .next = next};

        if (d->plan->a_floats == 0 || copies_a) {
            o.a = (const float *)d->a + (d->part->row + row) * g->a_row + panel->k * g->a_column;
            o.a_row = g->a_row;
            o.a_k = g->a_column;
            o.a_next = height * g->a_row;
        }
        n = is_first ? 1 : count_as_tall(tiles, t);
        if (d->plan->is_sliced) {
            o.walk = walk_slice(g, d->b, panel, p * tiles->end + t, panel->n_panels * tiles->end);
            n = 1;
        } else if (copies_a) {
            o.a_copy = a_copy;
            n = OT_MIN(n, d->uncopied - t);
        } else if (!panel->copies) {
            n = walk_panel(&o, ahead, g, t - first, n);
        }
        multiply_gemm_tiles(d->plan, d->y + row * g->y_row, &o, height, panel, p, n,
                            d->accumulates);
        next = o.next;
        if (panel->copies) {
            panel->origin = NULL;
            panel->copies = false;
        }
    }
}

// All panels of a block, of so many rows at a time where columns of `a` are copied.
static void multiply_down(const ot__gemm_plan *plan, const ot__gemm_data *data,
                          const ot__gemm_part *part, float *y, const block *x, bool accumulates,
                          float *a_copy)
{
    const ot__gemm *g = &plan->g;
    const void *a = plan->is_swapped ? data->b : data->a, *b = plan->is_swapped ? data->a : data->b;
    const int64_t rows = part->row_end - part->row;
    const int64_t most = OT_MIN(tile_height(plan, x), (int64_t)TILE_ROWS);
    const int64_t n_tiles = (rows + most - 1) / most;
    const bool copies = plan->a_floats > 0;
    const int64_t n_blocks = copies ? (rows + plan->a_rows - 1) / plan->a_rows : 1;
    const float *from = (const float *)b + part->column * g->b_column;
    float *copy = x->copy, *other = copy + most_vectors(x) * LANES * x->depth;
    next_panel next = {0};

    for (int64_t i = 0; i < n_blocks; i++) {
        descent d = {.plan = plan,
                     .part = part,
                     .a = a,
                     .b = from,
                     .y = y,
                     .a_copy = a_copy,
                     .tiles = {rows / n_tiles, rows % n_tiles, n_tiles * i / n_blocks,
                               n_tiles * (i + 1) / n_blocks},
                     .accumulates = accumulates};
        const int64_t n = d.tiles.end - d.tiles.first;

        d.uncopied =
            plan->copies_a_in_tiles ? copy_a_ends(a_copy, a, g, part, &d.tiles, x) : d.tiles.first;
        if (copies && !plan->copies_a_in_tiles)
            copy_a_columns(a_copy, a, g, part->row, part->row_end, &d.tiles, x);
        for (int64_t p = 0; p < x->n_panels; p++) {
            const bool again = i + 1 < n_blocks;
            block panel = *x;
            panel_ahead ahead;

            if (next.every > 0) { // it is there
                panel.copy = other;
                panel.origin = NULL;
                panel.copies = false;
                other = copy;
                copy = panel.copy;
            } else {
                panel.copy = copy;
                copy_b_panel(b, g, part->column, &panel, p);
            }
            ahead = panel_after(plan, from, x, p, n - panel.copies, again);
            next = panel_to_copy(plan, from, x, p, n - panel.copies, again, other);
            descend(&d, &panel, p, &ahead, next);
        }
        if (finishes_after(plan, x))
            finish_lines(plan, data, part, tile_row(&d.tiles, d.tiles.first),
                         tile_row(&d.tiles, d.tiles.end));
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

    for (int64_t d = 0; d < n_depths; d++) {
        const int64_t k = g->k * d / n_depths, depth = g->k * (d + 1) / n_depths - k;
        const bool adds = d > 0 || accumulates;
        block x = gemm_block_of(plan, part, k, depth, scratch + plan->a_floats);

        if (plan->reads_b) {
            x.origin = (const float *)b + k * g->b_row + part->column;
            x.copies = plan->copies_b;
        }
        x.is_one_panel = plan->is_one_panel;
        if (plan->goes_down) {
            multiply_down(plan, data, part, y, &x, adds, scratch);
            continue;
        }
        if (n_depths > 1 || !has_panels)
            copy_b(b, g, part->column, &x);
        multiply_along(plan, data, part, y, &x, adds, scratch);
    }
}

// ---- parts: where the results are rounded, they wait for it in scratch ----

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
    const int64_t n_blocks = (part->column_end - part->column + plan->width - 1) / plan->width;

    for (int64_t j = 0; j < n_blocks; j++) {
        const ot__gemm_part p = piece_of_columns(part, j, n_blocks);

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
    if (plan->by_rows) {
        run_passing(plan, data, part, scratch);
        return;
    }
#if OT_VECTOR_LANES >= 8
    if (plan->by_dots) {
        run_dots(plan, data, part, scratch);
        finish_lines(plan, data, part, 0, count_lines(plan, part));
        return;
    }
#endif
    run_blocks(plan, data, part, scratch);
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
    .rows_of_y = ROWS_OF_Y,
    .rows_floats = NEAR_FLOATS,
    .rows_passed = ROWS_PASSED,
    .rows_passed_clashing = ROWS_PASSED_CLASHING,
    .rows_scratch = ROWS_PASSED_CLASHING * (NEAR_FLOATS / ROWS_OF_Y + 2 * CACHE_LINE) +
                    PAGE / sizeof(float),
    .rows_depth = ROWS_DEPTH,
    .wide_depth = WIDE_DEPTH,
    .rows_columns = ROWS_COLUMNS,
    .rows_small = OT_ISA_LEVEL == 2 ? INT64_MAX : SMALL_ROWS,
    .tile_rows = TILE_ROWS,
    .tile_columns = USUAL_VECTORS * LANES,
    .most_columns = TILE_COLUMNS,
    .rows_of_widest = ROWS_OF_WIDEST,
    .panel_columns = PANEL_VECTORS * LANES,
    .depth = DEPTH,
    .most_depth = MOST_DEPTH,
    .depth_of_one = DEPTH_OF_ONE,
    .columns_depth = COLUMNS_DEPTH,
    .large_depth = LARGE_DEPTH,
    .width = WIDTH,
    .most_width = MOST_WIDTH,
    .a_row = A_ROW,
    .few_rows = FEW_ROWS,
    .few_panels = FEW_PANELS,
    .few_columns = FEW_COLUMNS,
    .rows_reading = ROWS_READING,
    .rows_clashing = ROWS_CLASHING,
    .rows_loose = ROWS_LOOSE,
    .rows_sliced = ROWS_SLICED,
    .rows_down = ROWS_DOWN,
    .shallow = SHALLOW,
    .shallow_columns = SHALLOW_COLUMNS,
    .most_copied_rows = MOST_COPIED_ROWS,
    .copies_ahead = OT_ISA_LEVEL > 0,
    .fetches_on_zen = OT_ISA_LEVEL != 1,
    .staged_rows = STAGED_ROWS,
    .staged_width = STAGED_WIDTH,
};
