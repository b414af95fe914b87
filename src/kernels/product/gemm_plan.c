// SPDX-License-Identifier: Apache-2.0
// The product in f32 for the processor at hand: which way round, in which blocks, and what is
// copied.
#include "kernels/product/gemm_plan.h"

// Multiplications below which a second thread costs more than it saves.
enum { THREAD_MIN = 100000 };

// y^T = b^T * a^T: the operand that needs transposing element by element becomes the smaller one.
// Elements of y cost so many times as much for each block of k, and less where y is small: they are
// transposed tile by tile. By bench kernels, Intel with AVX-512, GFLOP/s:
//
//   a * b^T       as it is  swapped  AVX2: as it is  swapped
//   32 100 100    111       130            63        73
//   64 84 120     128       132            71        73
//   64 512 784    139       156            75        82
//   128 512 512   158       165            81        84
//   128 768 768   151       156            78        80
//   256 1024 1024 156       157            81        77
//   256 3072 768  154       149            79        70
//   512 768 3072  160       149            82        74
static const double COST_OF_Y = 3, COST_OF_SMALL_Y = 0.4, SMALL_Y = 0x1p16;

// Where nothing needs transposing y is, if it is so narrow that b^T has no more than two rows of
// tiles: it would leave lanes unused, or tiles would be of one vector. Intel, GFLOP/s:
//
//   a^T * b        as it is  swapped  AVX2: as it is  swapped
//   1024 10 1024   42        73             30        52
//   512 10 64      65        135            49        88
//   16 12 64       39        100            35        84
//   128 16 256     135       187
//   2048 16 64     101       166
//   24 14 300      62        61             58        83 (14: not swapped)
//   100 14 64      90        117            65        60 (14: not swapped)
static bool should_swap(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const double n_blocks = OT_MAX(k / (double)kernel->depth, 1);
    const double cost = n_blocks * (m * n <= SMALL_Y ? COST_OF_SMALL_Y : COST_OF_Y);

    if (g->b_column == 1)
        return g->a_row == 1 && g->a_column != 1 && g->n <= kernel->few_rows && g->n < g->m;
    // As it is b is transposed; swapped a, unless its columns are contiguous, and y.
    return (g->a_row == 1 ? 0 : m * k) + cost * m * n < n * k;
}

// Floats that could be copied while the lines in which two threads meet in a row of y, and those
// that the processor brings beside them, go from one to the other.
static const double COST_OF_MEETING = 512, COST_NEARBY = 128;

// The parts that make the threads copy least, each part of the rows b, each of the columns a, and
// meet least: they write no line of the cache together where rows of y begin with one. Zen 4, AVX2,
// two threads, GFLOP/s by columns and by rows:
//
//   128 512 8 a^T b    50  137    512 1024 32 a b    145 168
//   64 512 10 a b      69  128    512 784 64 a^T b   158 168
//   1024 1024 16 a^T b 106 153    128 128 128 a b    156 165
//   128 1024 32 a b    131 149    64 1024 1024 a b   158 143
//
// On Intel threads that write different lines, of rows that begin with one, meet less. AVX-512,
// medians:
//
//   128 512 8 a^T b    120 245    128 1024 32 a b    297 251    64 1024 64 a b     321 254
//   64 512 10 a b      145 196    120 400 64 a^T b   350 311    256 512 64 a b     313 342
//   512 1024 32 a b    285 321    256 1024 16 a^T b  294 276    200 600 32 a^T b   246 264 (loose)
//
// Two vectors of columns are enough for a part (64 columns of which each thread had all: 64 84 120
// a b^T 139 and 246, 64 100 120 135 and 254, 64 120 400 253 and 301).
static void share_out(ot__gemm_plan *plan, const ot__gemm_kernel *kernel, int n_threads)
{
    enum { LEAST_VECTORS = 2 };
    const ot__gemm *g = &plan->g;
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const int64_t pitch = plan->is_swapped ? plan->y_column : g->y_row;
    const bool meets_nearby = ot__is_intel() && pitch % OT__LINE_FLOATS == 0;
    const double meeting = meets_nearby ? COST_NEARBY : COST_OF_MEETING;
    double least = -1;

    plan->n_row_parts = plan->n_col_parts = 1;
    plan->row_cut = plan->is_swapped ? OT__LINE_FLOATS : 1;
    plan->col_cut = plan->is_swapped ? kernel->lanes : OT__LINE_FLOATS;
    n_threads = (int)OT_MIN((double)n_threads, 1 + m * n * k / THREAD_MIN);
    for (int rows = 1; rows <= n_threads; rows++) {
        const int columns = n_threads / rows;
        const double meetings = plan->is_swapped ? n * (rows - 1) : m * (columns - 1);
        const double cost = k * (m * columns + n * rows) + meeting * meetings;

        if (rows * columns != n_threads ||
            (rows > 1 && rows * OT_MAX(kernel->tile_rows, plan->row_cut) > g->m) ||
            (columns > 1 && columns * OT_MAX(LEAST_VECTORS * kernel->lanes, plan->col_cut) > g->n))
            continue;
        if (least < 0 || cost < least) {
            least = cost;
            plan->n_row_parts = rows;
            plan->n_col_parts = columns;
        }
    }
}

// Rows that are contiguous are read where they lie, columns where there are too few of them, of y
// or of rows to pay for copying.
static bool reads_a(const ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const ot__gemm *g = &plan->g;
    const int64_t few = kernel->few_panels * kernel->tile_columns * plan->n_col_parts;

    return !ot__dtype_is_narrow(g->a_type) &&
           (g->a_column == 1 || g->n <= few || g->m <= kernel->few_rows ||
            g->k <= kernel->few_columns);
}

// Elements of k are so few, and a part of y is so wide, that copying `a` tile by tile, for tiles
// that go along a block of b, takes little. Zen 4, AVX2, GFLOP/s of a^T * b along and down:
//
//                                                                 two threads
//   1024 1024 16  81  75    512 1024 24  84  79    480 480 16   79  82    120 400 64 161 147
//   1000 1000 16  80  79    512 4096 64  88  85    1024 256 16  74  79    128 512 16 124  81
//   1024 1024 32  85  83    512 1024 128 87  87    1024 512 64  84  87    256 512 32 156 138
//   64 256 64     84  81    100 400 32   84  80    84 120 64    78  80    300 600 128 170 170
//
// On Intel with AVX-512 only where tiles that go down a y that no near cache keeps write lines that
// push each other out of the first one, with some more elements of k then:
//
//   1024 1024 24  194 161   1024 4096 24  194 161   1024 256 16  186 198   1000 300 16 163 182
//   1024 1024 32  198 180   4096 1024 48  208 189   256 1024 16  187 201   512 512 16  189 205
//   1024 1024 40  204 190   1024 2048 64  203 208   128 512 16   188 194   64 128 12   142 163
//   1024 1024 16  171 172   1000 1000 32  177 191   1024 256 12  172 184   64 256 16   180 175
static bool copies_tiles(const ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    enum { SHALLOW_CLASHING = 48 };
    const ot__gemm *g = &plan->g;
    const int64_t rows = g->m / plan->n_row_parts, columns = g->n / plan->n_col_parts;

    if (ot__is_avx512_on_intel(kernel))
        return g->k <= SHALLOW_CLASHING && g->y_row % OT__CLASH == 0 &&
               g->m * g->n > ot__second_cache_floats();
    return g->k <= kernel->shallow && (columns >= kernel->shallow_columns || columns >= 2 * rows);
}

// Tiles copy columns of `a` where those do not push each other out of the first cache: next to the
// multiplications that takes no time. Only Intel with AVX-512 was measured, GFLOP/s where they are
// copied before and meanwhile (AVX2: 1000^3 123 and 117):
//
//   256 256 1024  204 217    84 120 64     175 183    3072 768 512  214 216
//   1024 256 1024 202 209    1024 256 64   211 217    2048 512 2048 206 197
//   256 768 1024  213 220    768 768 512   216 220    4096 4096 512 191 185
static bool copies_a_in_tiles(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    return ot__is_avx512_on_intel(kernel) && !ot__dtype_is_narrow(g->a_type) &&
           g->a_column % OT__CLASH != 0;
}

// What is copied of `a` at a time where it is not read: a tile where its rows are contiguous or
// tiles go along a block of b, else as many rows as half of the second cache holds.
static void size_copies(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const ot__gemm *g = &plan->g;
    const int64_t depth = OT_MIN(g->k, plan->depth);
    const int64_t most = OT_MIN(ot__second_cache_floats() / 2 / depth, kernel->most_copied_rows);

    if (reads_a(plan, kernel))
        return;
    if (g->a_column == 1) {
        plan->a_floats = kernel->tile_rows * kernel->a_row;
    } else if (copies_tiles(plan, kernel)) {
        plan->a_floats = ot__whole_lines(kernel->tile_rows * depth);
    } else {
        plan->a_rows = OT_MAX(most / kernel->tile_rows, 1) * kernel->tile_rows;
        plan->a_floats =
            ot__whole_lines(OT_MIN(plan->a_rows, ot__whole_tiles(g->m, kernel->tile_rows)) * depth);
        plan->copies_a_in_tiles = copies_a_in_tiles(g, kernel);
    }
}

// A y that no cache keeps is added to as few times as possible, although a panel of b does not stay
// in the first cache then; with AVX2 it nearly does (Zen 4, GFLOP/s, 256 and 512 deep: 2048 2048
// 2048 85 and 82, 1024 4096 1024 84 and 79, 4096 4096 512 85 and 82). a^T * b by the depth, on
// Intel:
//
//   AVX-512         192   512      AVX2            192   512
//   1024 16384 512  168   187      1024 16384 512  105   109
//   768 30522 512   154   185      768 30522 512   77    107
//   768 3072 512    195   182      4096 4096 1024  110   110
//   (peak 175)                     (peak 88)
//   1024 4096 1024  150   156      1024 4096 1024  78    80
//   2048 2048 2048  152   155      2048 2048 2048  80    81
//   1024 1024 4096  157   153      768 3072 512    77    81
//
// A block of few columns takes as much of the cache when it is deeper, and y is then written less
// often. Where one tile has all of them each row of `a` is read once, the longer the better; Intel,
// AVX-512, 512 and 1024 deep: 4096 48 1024 a b 167 and 176, 1024 16 4096 115 and 121, 64 512 784 a
// b^T 149 and 159.
static int64_t block_depth(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const int64_t columns = ot__whole_tiles(g->n, kernel->lanes);
    const int64_t depth = kernel->depth * kernel->width / columns;
    const int64_t most =
        columns <= kernel->most_columns ? kernel->depth_of_one : kernel->most_depth;

    if (g->a_column != 1)
        return (double)g->m * (double)g->n < OT__UNCACHED ? kernel->columns_depth
                                                          : kernel->large_depth;
    if (ot__dtype_is_narrow(g->a_type))
        return kernel->depth;
    return OT_MAX(kernel->depth, OT_MIN(depth, most));
}

// All columns are one block, of which one panel is copied at a time, where tiles go down them,
// unless rows are staged. Else a block takes half of the second cache, or as much as one of the
// usual depth and the greatest width: where k is small it is wider, and each row of `a` is copied,
// or read, less often. Zen 4, AVX2, GFLOP/s with blocks of 256 columns and wider: 1024 1024 16 a^T
// b 71 and 81, 1024 1024 32 a b 84 and 87, 1024 4096 64 a b^T 84 and 87, 4096 1024 256 a b 89 and
// 89.
static int64_t block_width(const ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const int64_t depth = OT_MIN(plan->g.k, plan->depth);
    const int64_t fit =
        OT_MIN(ot__second_cache_floats() / 2, kernel->depth * kernel->most_width) / depth;

    const int64_t width = plan->goes_down
                              ? ot__whole_tiles(plan->g.n, kernel->lanes)
                              : OT_MAX(kernel->width, fit / kernel->lanes * kernel->lanes);

    return ot__gemm_is_staged(&plan->g) ? OT_MIN(width, kernel->staged_width) : width;
}

// Rows of a large `a` are fetched by the tiles above them, but on Intel, which sees them coming.
// GFLOP/s without and with it, AVX-512 (Zen 4 with AVX2 as with it):
//
//   Zen 4                    Intel
//   16384 64 256  102 111    16384 64 256  151 149
//   8192 768 768  109 113    4096 64 1024  170 157
//   4096 768 3072 102 111    2048 64 512 a b^T 168 157
static bool walks_a(const ot__gemm_plan *plan)
{
    const ot__gemm *g = &plan->g;

    return !ot__is_intel() && plan->a_floats == 0 && g->a_column == 1 && !plan->goes_down &&
           g->m * g->k > ot__second_cache_floats();
}

// Tiles fetch their lines of y, and of `a` those below them, but with AVX2 on Zen 3 and 4 where a
// cache keeps y, unless it is not the second and tiles go down rows that begin anywhere in a line.
// GFLOP/s without and with it:
//
//   Zen 4                                                   Intel (without and with rows of `a`)
//   784 512 64 a^T b   87 85    1000 2001 256 a^T b  82 87  4096 512 512  79  83
//   1024 1024 256      87 86    768 30522 512 a^T b  77 87
//   512 3072 768 a b   88 87    1000 1001 64 a^T b   87 85
//
// Nor with AVX-512 on Intel where a single product is shallow, and the second cache holds
// everything or, of so few elements of k that there is no time, the first all of y; GFLOP/s with it
// and without:
//
//   512 512 64    207 218    512 784 64 a^T b 219 224    512 512 512  221 220
//   256 1024 32   200 207    84 120 64 a^T b  181 190    256 512 384  230 224
//   256 256 256   227 230    512 256 200      227 231    1024 256 256 224 220
//   64 84 10      111 117    64 512 13        184 185    64 512 10    178 164
//   64 128 10     145 153    64 512 24        189 200    512 300 12   157 143
static bool fetches_lines(const ot__gemm_plan *plan, const ot__gemm_kernel *kernel,
                          int64_t n_batches)
{
    enum { SHALLOW_ON_INTEL = 256, TOO_SHALLOW = 12, FIRST_CACHE = 8192 };
    const ot__gemm *g = &plan->g;
    const int64_t y_floats = g->m * g->n;
    const bool is_loose = plan->goes_down && g->y_row % OT__LINE_FLOATS != 0 &&
                          y_floats > ot__second_cache_floats() && g->k > kernel->shallow;

    if (ot__is_avx512_on_intel(kernel))
        return n_batches > 1 || g->k > SHALLOW_ON_INTEL ||
               (g->k <= TOO_SHALLOW && y_floats > FIRST_CACHE) ||
               y_floats + (g->m + g->n) * g->k > ot__second_cache_floats();
    return kernel->fetches_on_zen || !ot__is_zen_3_or_4() || is_loose ||
           (double)y_floats > OT__UNCACHED;
}

void ot__gemm_plan_make(ot__gemm_plan *plan, const ot__gemm_kernel *kernel, const ot__gemm *g,
                        int64_t n_batches, int n_threads)
{
    int64_t depth, width, width_held, n_floats;

    if (n_batches >= n_threads)
        n_threads = 1;
    *plan = (ot__gemm_plan){.g = *g, .y_column = 1};
    if (ot__gemm_plan_few(plan, kernel)) {
        share_out(plan, kernel, n_threads);
        return;
    }
    plan->is_swapped = should_swap(g, kernel);
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
    if (!ot__gemm_plan_slices(plan, kernel))
        plan->depth = block_depth(&plan->g, kernel);
    size_copies(plan, kernel);
    ot__gemm_plan_reading_b(plan, kernel);
    plan->walks_a = walks_a(plan);
    plan->fetches_lines = fetches_lines(plan, kernel, n_batches);
    plan->width = block_width(plan, kernel);
    depth = OT_MIN(plan->g.k, plan->depth);
    width = OT_MIN(ot__whole_tiles(plan->g.n, kernel->lanes), plan->width);
    width_held = width;
    if (plan->is_one_panel)
        width_held = OT_MIN(width, kernel->most_columns) * (plan->copies_ahead ? 2 : 1);
    n_floats = ot__whole_lines(plan->a_floats + depth * width_held);
    if (ot__gemm_is_staged(&plan->g)) {
        // Of one block of k no panel is copied twice, however few rows are staged, unless it makes
        // place for the next.
        plan->staged_rows = OT_MIN(
            plan->g.k <= plan->depth && plan->a_rows == 0 ? kernel->tile_rows : kernel->staged_rows,
            plan->g.m);
        plan->stage_at = n_floats;
        n_floats = ot__whole_lines(n_floats + plan->staged_rows * width);
    }
    plan->scratch_bytes = (size_t)n_floats * sizeof(float);
}

// Of tiles the largest of each kind: operands contiguous along either axis, of 32 or 16 bits, y
// small or large.
size_t ot__gemm_most_scratch(const ot__gemm_kernel *kernel)
{
    enum { ROOT_OF_LARGE_Y = 1 << 11, KINDS = 16 };
    const int64_t passing =
        OT_MAX(kernel->rows_scratch, 2 * kernel->rows_depth * kernel->rows_floats);
    const int64_t dots = (int64_t)OT__MOST_VECTORS_OF_DOTS * kernel->lanes * kernel->dots_row;
    size_t n_bytes = (size_t)ot__whole_lines(OT_MAX(passing, dots)) * sizeof(float);

    for (int kind = 0; kind < KINDS; kind++) {
        const bool a_transposed = kind % 2 != 0, b_transposed = kind / 2 % 2 != 0;
        const ot_dtype type = kind / 4 % 2 != 0 ? OT_BF16 : OT_F32;
        const int64_t wide = kind / 8 != 0 ? (int64_t)ROOT_OF_LARGE_Y
                                           : 2 * OT_MAX(kernel->depth, kernel->most_width);
        const ot__gemm g = {.m = wide,
                            .n = wide,
                            .k = wide,
                            .a_row = a_transposed ? 1 : wide,
                            .a_column = a_transposed ? wide : 1,
                            .b_row = b_transposed ? 1 : wide,
                            .b_column = b_transposed ? wide : 1,
                            .y_row = wide,
                            .a_type = type,
                            .b_type = type};
        ot__gemm_plan plan;

        ot__gemm_plan_make(&plan, kernel, &g, 1, 1);
        n_bytes = OT_MAX(n_bytes, plan.scratch_bytes);
    }
    return n_bytes;
}
