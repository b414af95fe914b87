// SPDX-License-Identifier: Apache-2.0
// The product in f32 for the processor at hand: which way round, and who computes what.
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/kernels.h"

// Multiplications below which a second thread costs more than it saves.
enum { THREAD_MIN = 100000, ALIGNMENT_FLOATS = 16 };

// y^T = b^T * a^T: the operand that needs transposing element by element becomes the smaller one.
static bool should_swap(const ot__gemm *g)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;

    if (g->b_column == 1)
        return false;
    // As it is b is transposed; swapped a, unless its columns are contiguous, and y.
    return (g->a_row == 1 ? 0 : m * k) + m * n < n * k;
}

// From so many vectors of k on the sums of their lanes cost less than lanes that are not used; at
// most so many vectors of rows or columns are few. By ./dev bench kernels, Zen 5, GFLOP/s:
//
//   a * b^T   AVX-512                            AVX-512
//             tiles lanes along k                tiles lanes along k
//   64 4 64   30    108            64 14 512     153   218
//   64 10 128 91    138            64 20 512     111   216
//   64 10 512 102   203            64 28 512     176   213
//   64 12 512 131   226            8 1000 512    103   191
//
// and with AVX2, Zen 3 (peak 103), where one vector of rows or columns that is full pays, too, from
// some k on:
//
//   64 4 64   39    37 (Zen 5: 31, 60)           8 1000 256    67    64
//   64 10 512 61    81                           8 1000 512    67    71
//   64 14 512 69    82                           8 1000 2048   31    62
//   64 16 512 87    83                           16 1024 256   82    69
enum { LEAST_DEPTH_OF_DOTS = 4, MOST_VECTORS_OF_DOTS = 2 };

// So many of the few lines stay in the cache whatever their distance, beside those of a tile.
enum { LINES_THAT_STAY = 2 };

// Both operands have k contiguous, y few rows or columns, and nothing is of 16 bits.
static bool is_for_dots(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const int64_t few = OT_MIN(g->m, g->n), lanes = kernel->lanes;
    const int64_t n_vectors = (few + lanes - 1) / lanes;
    const bool is_sparse = 8 * few <= kernel->dots_eighths * n_vectors * lanes;
    const bool is_full = few == lanes && kernel->full_dots_depth > 0;
    const bool is_narrow = ot__dtype_is_narrow(g->a_type) || ot__dtype_is_narrow(g->b_type) ||
                           ot__dtype_is_narrow(g->c_type) || ot__dtype_is_narrow(g->y_type);

    return !is_narrow && g->a_column == 1 && g->b_row == 1 && g->b_column != 1 &&
           g->k >= LEAST_DEPTH_OF_DOTS * lanes && n_vectors <= MOST_VECTORS_OF_DOTS &&
           (is_sparse || (is_full && g->k >= kernel->full_dots_depth));
}

// The parts that make the threads copy least: each part of the rows copies b, each of the columns
// a.
static void share_out(ot__gemm_plan *plan, const ot__gemm_kernel *kernel, int n_threads)
{
    const ot__gemm *g = &plan->g;
    const double multiplications = (double)g->m * (double)g->n * (double)g->k;
    double least = -1;

    plan->n_row_parts = plan->n_col_parts = 1;
    n_threads = (int)OT_MIN((double)n_threads, 1 + multiplications / THREAD_MIN);
    for (int rows = 1; rows <= n_threads; rows++) {
        const int columns = n_threads / rows;
        const double cost = (double)g->m * columns + (double)g->n * rows;

        if (rows * columns != n_threads || (rows > 1 && rows * kernel->tile_rows > g->m) ||
            (columns > 1 && columns * kernel->tile_columns > g->n))
            continue;
        if (least < 0 || cost < least) {
            least = cost;
            plan->n_row_parts = rows;
            plan->n_col_parts = columns;
        }
    }
}

static int64_t whole_lines(int64_t n_floats)
{
    return (n_floats + ALIGNMENT_FLOATS - 1) / ALIGNMENT_FLOATS * ALIGNMENT_FLOATS;
}

// What is copied of `a` at a time: of rows whose columns are contiguous so many that whole lines of
// the cache are read, and an odd number of lines apart, so that they share the cache out evenly; or
// a tile of rows that must be widened. Other rows are read where they lie.
static void size_copies(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const ot__gemm *g = &plan->g;

    if (g->a_column != 1) {
        plan->a_pitch = whole_lines(OT_MIN(g->m, kernel->group_rows)) | ALIGNMENT_FLOATS;
        plan->a_floats = plan->a_pitch * OT_MIN(g->k, plan->depth);
    } else if (ot__dtype_is_narrow(g->a_type)) {
        plan->a_pitch = kernel->a_row;
        plan->a_floats = kernel->tile_rows * plan->a_pitch;
    }
}

// A block of few columns takes as much of the cache when it is deeper, and y is then written less
// often.
static int64_t block_depth(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const int64_t columns = (g->n + kernel->lanes - 1) / kernel->lanes * kernel->lanes;
    const int64_t depth = kernel->depth * kernel->width / columns;

    if (g->a_column != 1)
        return kernel->columns_depth;
    if (ot__dtype_is_narrow(g->a_type))
        return kernel->depth;
    return OT_MAX(kernel->depth, OT_MIN(depth, kernel->most_depth));
}

static int64_t block_width(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const int64_t fit = ot__second_cache() / 2 / (int64_t)sizeof(float) / kernel->depth;

    if (g->a_column != 1)
        return kernel->columns_width;
    return OT_MAX(kernel->width, OT_MIN(fit, kernel->most_width));
}

static void plan_dots(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const ot__gemm *g = &plan->g;
    const int64_t few = OT_MIN(g->m, g->n);

    plan->depth = few <= LINES_THAT_STAY ? g->k : OT_MIN(g->k, kernel->dots_depth);
    if (plan->depth < g->k)
        plan->scratch_bytes = (size_t)(few * kernel->dots_row) * sizeof(float);
}

void ot__gemm_plan_make(ot__gemm_plan *plan, const ot__gemm_kernel *kernel, const ot__gemm *g,
                        int n_threads)
{
    int64_t width, n_floats;

    *plan = (ot__gemm_plan){.g = *g, .y_column = 1, .by_dots = is_for_dots(g, kernel)};
    plan->is_swapped = !plan->by_dots && should_swap(g);
    if (plan->is_swapped) {
        plan->g = (ot__gemm){.m = g->n,
                             .n = g->m,
                             .k = g->k,
                             .alpha = g->alpha,
                             .beta = g->beta,
                             .a_row = g->b_column,
                             .a_column = g->b_row,
                             .b_row = g->a_column,
                             .b_column = g->a_row,
                             .c_row = g->c_column,
                             .c_column = g->c_row,
                             .y_row = 1,
                             .a_type = g->b_type,
                             .b_type = g->a_type,
                             .c_type = g->c_type,
                             .y_type = g->y_type};
        plan->y_column = g->y_row;
    }
    share_out(plan, kernel, n_threads);
    if (plan->by_dots) {
        plan_dots(plan, kernel);
        return;
    }
    plan->depth = block_depth(&plan->g, kernel);
    plan->width = block_width(&plan->g, kernel);
    width = OT_MIN((plan->g.n + kernel->lanes - 1) / kernel->lanes * kernel->lanes, plan->width);
    size_copies(plan, kernel);
    n_floats = whole_lines(plan->a_floats + OT_MIN(plan->g.k, plan->depth) * width);
    if (ot__dtype_is_narrow(g->y_type) || ot__dtype_is_narrow(g->c_type)) {
        // Of one block of k no panel is copied twice, however few rows are staged.
        plan->staged_rows =
            OT_MIN(plan->g.k <= plan->depth ? kernel->tile_rows : kernel->staged_rows, plan->g.m);
        plan->stage_at = n_floats;
        n_floats = whole_lines(n_floats + plan->staged_rows * width);
    }
    plan->scratch_bytes = (size_t)n_floats * sizeof(float);
}

// Part number i of n of the range 0 .. count - 1, in whole tiles.
static void cut_tiles(int64_t count, int64_t tile, int64_t i, int64_t n, int64_t *first,
                      int64_t *end)
{
    const int64_t n_tiles = (count + tile - 1) / tile;

    *first = OT_MIN(n_tiles * i / n * tile, count);
    *end = OT_MIN(n_tiles * (i + 1) / n * tile, count);
}

static void run_item(const ot__gemm_kernel *kernel, const ot__gemm_plan *plan,
                     const ot__gemm_batches *batches, int64_t item, float *scratch)
{
    const int64_t n_parts = (int64_t)plan->n_row_parts * plan->n_col_parts;
    const int64_t i = item % n_parts;
    ot__gemm_part part;
    ot__gemm_data data;

    batches->at(batches->context, item / n_parts, &data);
    cut_tiles(plan->g.m, 1, i / plan->n_col_parts, plan->n_row_parts, &part.row, &part.row_end);
    cut_tiles(plan->g.n, kernel->lanes, i % plan->n_col_parts, plan->n_col_parts, &part.column,
              &part.column_end);
    kernel->run(plan, &data, &part, scratch);
}

void ot__gemm_run(const ot__gemm_kernel *kernel, const ot__gemm_plan *plan,
                  const ot__gemm_batches *batches, float *scratch, int n_threads)
{
    const int64_t n_items = batches->n_batches * plan->n_row_parts * plan->n_col_parts;
    const size_t stride = plan->scratch_bytes / sizeof(float);

#ifdef _OPENMP
    if (n_items > 1 && n_threads > 1) {
#pragma omp parallel for schedule(static) num_threads((int)OT_MIN((int64_t)n_threads, n_items))
        for (int64_t item = 0; item < n_items; item++)
            run_item(kernel, plan, batches, item, scratch + (size_t)omp_get_thread_num() * stride);
        return;
    }
#else
    (void)n_threads;
    (void)stride;
#endif
    for (int64_t item = 0; item < n_items; item++)
        run_item(kernel, plan, batches, item, scratch);
}
