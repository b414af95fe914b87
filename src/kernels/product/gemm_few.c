// SPDX-License-Identifier: Apache-2.0
// The product in f32 where y has few rows or columns, or k is small: whether lanes go along k, or
// rows of b pass by, instead of tiles.
#include "kernels/product/gemm_plan.h"

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
//
// but not with AVX-512 (16 256 1024: Zen 4 110 and 105, Intel 156 and 146; 1024 16 1024: 112 and
// 102, 151 and 136).
enum { LEAST_DEPTH_OF_DOTS = 4 };

// So many of the few lines stay in the cache whatever their distance, beside those of a tile.
enum { LINES_THAT_STAY = 2 };

// Elements of b that stay in the second cache of most processors; its rows that are long.
enum { MUCH_TO_READ = 1 << 17, LONG_ROW = 512 };

// So few elements of k, for so many columns of y, that rows of b pass by: twice as many columns
// where what they are multiplied by is gathered from columns of `a`.
static bool is_shallow(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const int64_t enough = g->a_column == 1 ? kernel->rows_columns : 2 * kernel->rows_columns;

    if (!ot__is_zen_3_or_4())
        return g->k <= kernel->wide_depth && g->n >= 8 * kernel->rows_columns;
    return (g->k <= kernel->rows_depth && g->n >= enough) ||
           (g->k <= 2 * kernel->rows_depth && g->n >= 4 * kernel->rows_columns &&
            g->m * g->n < kernel->rows_small);
}

// Rows of b are contiguous and more than a line of the cache, and y has few of them, for several of
// which a b that stays in that cache is no hindrance; or k is small and y wide. Nothing is of 16
// bits. By bench kernels, GFLOP/s:
//
//   Zen 4        AVX-512      AVX2            Intel        AVX-512      AVX2
//                tiles rows   tiles rows                   tiles rows   tiles rows
//   1 24 512      6    20     19    30        1 24 512       6   10     17    14
//   1 96 512     54    48     28    46        1 96 512      49   43     23    30
//   1 1000 1000  33    42     29    43        1 1000 1000   14   13     14    14
//   1 1024 1024  16    42     12    42        1 1024 1024   11   13      7    14
//   1 4096 1024  12    34     10    33        1 4096 1024   10   13      7    13
//   2 128 512    83    74     58    61        2 128 512     56   78     41    41
//   2 1000 2048  51    66     40    67        2 1000 2048   27   27     18    27
//   2 1024 1024  30    74     23    69        2 1024 1024   22   28     15    27
//   4 1000 1000 100    102    74    100       4 1000 1000   54   53     24    51
//   4 1024 1024  70    112    66    96        4 1024 1024   39   45     23    54
//   1024 32 8    64    64     62    40        1024 32 8     48   42     56    54
//   64 64 8      73    83     67    59        64 64 8       67   48     60    60
//   64 256 4     68    87     62    87        64 256 4      86   78     55    52
//   64 256 8     85    105    84    92        64 256 8     129  134     75    74
//   64 256 16    98    104    99    87        64 256 16    150  136     82    81
//   8192 256 8   84    103    83    84        8192 256 8    93   65     73    52
//   16 4096 16   76    110    75    52        16 4096 16   136  130     70    67
//                                             128 512 8    110  145     76    58
//                                             256 512 8    123  135     79    82
//                                             1024 1024 4   39   44     37    40
//                                             1024 1024 16 119   93
//
// With AVX2 these are of eight rows of b at a time; of four, which is now, Zen 4 (peak 92):
//
//                tiles rows                   tiles rows                  tiles rows
//   64 64 8       50    51      512 128 8      64    69      64 512 10     71    79
//   64 84 8       45    49      64 256 12      72    78      64 512 16 a^T b 63  82
//   64 128 8      60    67      64 256 16      77    80      1024 1024 16  83    75
//
// With AVX2 more rows than a tile has pay, too: 7 and 8 where b is far, yet in a cache, up to 16
// where its rows are a multiple of a page apart. Zen 4 (peak 92):
//
//                tiles rows                   tiles rows                  tiles rows
//   7 512 512     57    72      16 1024 1024   64    78     16 1000 1000   77    75
//   8 1000 1000   62    74      16 1024 256    65    78     16 512 512     77    74
//   8 1024 1024   49    79      12 1024 1024   62    78     16 2048 2048   64    59
//   8 3072 768    49    75      16 3072 768    64    76     8 256 512      75    66
//   8 2048 2048   49    65      16 1024 64     59    77     8 30522 768    52    35
static bool clashing_rows_pass(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const double n_elements = (double)g->n * (double)g->k;

    return g->m <= kernel->rows_passed_clashing && g->b_row % (int64_t)OT__CLASH == 0 &&
           n_elements < OT__UNCACHED;
}

static bool is_for_rows(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const bool is_long = g->n >= (int64_t)LONG_ROW, is_much = g->n * g->k >= (int64_t)MUCH_TO_READ;
    const double n_elements = (double)g->n * (double)g->k;
    const bool is_low = g->m == 1 || (g->m <= kernel->rows_of_y && is_much);
    const bool is_some = g->m > kernel->tile_rows && is_long &&
                         ((g->m <= kernel->rows_passed && is_much && n_elements <= OT__UNCACHED) ||
                          clashing_rows_pass(g, kernel));

    return !ot__gemm_has_narrow(g) && g->n > OT__LINE_FLOATS &&
           ((g->b_column == 1 && (is_low || is_some)) || is_shallow(g, kernel));
}

// Both operands have k contiguous, y few rows or columns, and nothing is of 16 bits.
static bool is_for_dots(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const int64_t few = OT_MIN(g->m, g->n), lanes = kernel->lanes;
    const int64_t n_vectors = (few + lanes - 1) / lanes;
    const bool is_sparse = 8 * few <= kernel->dots_eighths * n_vectors * lanes;
    const bool is_near = (double)OT_MAX(g->m, g->n) * (double)g->k < OT__UNCACHED;
    const bool is_full = few == lanes && is_near && kernel->full_dots_depth > 0;

    return !ot__gemm_has_narrow(g) && g->a_column == 1 && g->b_row == 1 && g->b_column != 1 &&
           g->k >= LEAST_DEPTH_OF_DOTS * lanes && n_vectors <= OT__MOST_VECTORS_OF_DOTS &&
           (is_sparse || (is_full && g->k >= kernel->full_dots_depth));
}

// Rows of b that pass by next are fetched where no cache keeps them, but on Intel, where it was not
// measured. Zen 4, AVX2, GFLOP/s without and with it: 1 30522 768 11 14, 4 30522 768 24 42, 4 4096
// 4096 30 43, and from the third cache 4 1024 1024 77 61.
static void plan_rows(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const ot__gemm *g = &plan->g;
    const int64_t rows = OT_MIN(g->m, kernel->rows_of_y);

    plan->walks_b =
        g->b_column == 1 && (double)g->n * (double)g->k > OT__UNCACHED && !ot__is_intel();
    plan->width = OT_MIN(kernel->rows_floats / rows / kernel->lanes * kernel->lanes,
                         ot__whole_tiles(g->n, kernel->lanes));
    // A copy of b, or sums.
    plan->scratch_bytes =
        (size_t)ot__whole_lines(g->b_column != 1 ? g->k * plan->width : kernel->rows_scratch) *
        sizeof(float);
}

static void plan_dots(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const ot__gemm *g = &plan->g;
    const int64_t few = OT_MIN(g->m, g->n);

    plan->depth = few <= LINES_THAT_STAY ? g->k : OT_MIN(g->k, kernel->dots_depth);
    if (plan->depth < g->k)
        plan->scratch_bytes = (size_t)(few * kernel->dots_row) * sizeof(float);
}

bool ot__gemm_plan_few(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    plan->by_dots = is_for_dots(&plan->g, kernel);
    plan->by_rows = is_for_rows(&plan->g, kernel);
    if (plan->by_rows)
        plan_rows(plan, kernel);
    else if (plan->by_dots)
        plan_dots(plan, kernel);
    return plan->by_rows || plan->by_dots;
}
