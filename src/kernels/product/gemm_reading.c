// SPDX-License-Identifier: Apache-2.0
// The product in f32 by tiles: how b is read, in which blocks, and what of it is copied when.
#include "kernels/product/gemm_plan.h"

// Rows of b, as many as a block is deep, fall on the same lines of the second cache, or nearly:
// together they would fill it.
static bool rows_clash(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    const int64_t fit = ot__second_cache_floats() / kernel->depth;
    int64_t apart = 1, near;

    while (2 * apart <= fit)
        apart *= 2;
    near = (g->b_row + OT__LINE_FLOATS - 1) % apart; // of a multiple less than a line on both sides
    return g->b_row > OT__LINE_FLOATS && near < 2 * OT__LINE_FLOATS - 1;
}

// The second cache does not hold it.
static bool b_is_far(const ot__gemm *g)
{
    return g->n * g->k > ot__second_cache_floats();
}

// So few rows of `a` that bringing a b whose rows clash takes longest: panels of it would push
// themselves out of the second cache, or be copied for a tile or two. Blocks are as many whole rows
// as an eighth of that cache holds; each tile fetches its part of the next. Only Intel was
// measured, GFLOP/s in panels (rows that pass by: *) and in slices:
//
//   AVX-512                                                                  AVX2
//   4 1024 1024 60* 54    8 3072 768   77  95    12 1024 1024 104* 120    5 1024 1024  33 48
//   5 1024 1024 50  70    8 4096 4096  45  84    16 1024 1024 115* 141    6 1024 1024  39 57
//   8 1024 1024 75 105    9 1024 1024  86* 98    24 1024 1024 148  143    8 1024 1024  77* 48
//
// Where rows do not clash, panels do as well (8 1000 1000 103 and 108, 16 768 3072 153 and 147).
static bool is_sliced(const ot__gemm *g, const ot__gemm_kernel *kernel)
{
    return ot__is_intel() && !ot__gemm_has_narrow(g) && g->a_column == 1 && g->b_column == 1 &&
           g->m <= kernel->rows_sliced && b_is_far(g) && rows_clash(g, kernel);
}

bool ot__gemm_plan_slices(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    enum { LEAST_DEPTH = 32 };

    plan->is_sliced = is_sliced(&plan->g, kernel);
    if (plan->is_sliced)
        plan->depth = OT_MAX(ot__second_cache_floats() / 8 / plan->g.n, (int64_t)LEAST_DEPTH);
    return plan->is_sliced;
}

// Rows of b begin anywhere in a line of the cache: each row of a panel touches one more. 256 rows
// and more gain by copying (Zen 4, GFLOP/s where b is read and copied: 512 30522 768 107 and 109,
// 256 50257 768 104 and 109, 32 30522 768 106 and 101).
static bool has_loose_rows(const ot__gemm *g)
{
    return g->b_row % OT__LINE_FLOATS != 0;
}

// So many rows of `a` do not pay for copying b. A large b of several blocks of k is copied earlier
// on Intel; AVX-512, GFLOP/s where it is read and copied:
//
//   16 1024 1024 (rows clash)  94  103    512 768 3072   154 161
//   16 4096 1024 (rows clash)  94  103    2048 768 768   167 171
//   256 768 3072               153 158    512 30528 768  153 159
static int64_t rows_reading(const ot__gemm_plan *plan, const ot__gemm_kernel *kernel, bool is_far)
{
    const ot__gemm *g = &plan->g;
    const int64_t near = 2 * g->n * g->k <= ot__second_cache_floats() ? 2 * kernel->tile_rows : 0;
    const bool is_early = is_far && g->k > kernel->depth && ot__is_intel();

    if (plan->a_rows > 0)
        return kernel->tile_rows;
    if (rows_clash(g, kernel))
        return OT_MAX(is_early ? kernel->tile_rows : kernel->rows_clashing, near);
    if (is_early || (is_far && has_loose_rows(g)))
        return OT_MIN(kernel->rows_loose, kernel->rows_reading);
    return OT_MAX(kernel->rows_reading, near);
}

// Rows of `a` that wait in a cache while tiles go down the panels of a large b: on Zen 3 and 4 in
// the third, which is near, elsewhere in an eighth of the second. AVX-512, GFLOP/s along and down:
//
//   Zen 4                     Intel
//   2048 768 768   109 112    64 30522 768 96  118    192 3072 768 149 143
//   4096 3072 768  111 109    64 4096 1024 123 129    256 768 3072 146 151
//   8192 768 768   109 95     128 768 3072 146 154    512 3072 768 156 146
static int64_t rows_waiting(const ot__gemm_kernel *kernel)
{
    const int64_t fit = ot__second_cache_floats() / 8 / kernel->depth;

    return ot__is_zen_3_or_4() ? kernel->rows_down : OT_MIN(fit, kernel->rows_down);
}

// Where rows clash, what is fetched of the next panel pushes itself and the copy of `a` out of the
// second cache, and where no cache keeps b, too much is asked for at once: tiles copy the next
// panel little by little. Only Intel was measured, GFLOP/s where they fetch it and where they copy
// it:
//
//   AVX-512                                                      AVX2
//   17 1024 1024 a b   85 116    2048 2048 2048 a^T b 185 198    24 1024 600 a b   85 106
//   32 1024 1024 a b  128 168    4096 4096 512 a^T b  187 197    64 1024 1024 a b  87 108
//   64 1024 1024 a b  162 193    4096 4096 4096 a^T b 184 198    64 2048 2048 a b  86 110
//   128 4096 4096 a b 147 184    1024 1024 1024 a^T b 205 209    16 8192 1024 a b  48  72
//   64 30528 768 a b  127 172    256 4096 1024 a^T b  207 211    512 512 4096 a^T b 118 112
//   24 1000 1000 a b  169 161    512 2048 512 a^T b   207 213    64 30522 768 a b  97  52
static bool copies_ahead(const ot__gemm_plan *plan, const ot__gemm_kernel *kernel, bool reads_far)
{
    const ot__gemm *g = &plan->g;

    if (!reads_far || !plan->goes_down || plan->is_sliced || !ot__is_intel() ||
        !kernel->copies_ahead)
        return false;
    if (ot__is_avx512_on_intel(kernel))
        return rows_clash(g, kernel) || (double)g->n * (double)g->k > OT__UNCACHED;
    return rows_clash(g, kernel) && plan->a_rows == 0;
}

// Tiles of four vectors and six rows, where three vectors do not divide the columns: they load less
// for a multiplication than those of two vectors that are left, and panels are fewer. They gain
// where that makes fewer tiles, and a little where rows and elements of k are many, unless rows of
// b clash. Only Intel with AVX-512 was measured, GFLOP/s with three vectors and two, and with four:
//
//   5 256 512    208 223    17 512 512    210 226    32 512 512    222 216    1024 256 1024 227 230
//   6 512 512    210 222    18 256 256    223 230    64 512 784    205 196    4096 512 512  217 223
//   9 512 512    201 213    8 256 512     230 212    512 512 64    216 214    32 1024 256   197 185
//   12 1024 1024 120 128    13 512 256    200 190    256 256 256   231 235    1024 1024 256 228 227
static bool takes_widest(const ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    enum { MANY_ROWS = 256, DEEP = 256 };
    const ot__gemm *g = &plan->g;
    const int64_t rows = (g->m + plan->n_row_parts - 1) / plan->n_row_parts;
    const int64_t height = kernel->rows_of_widest, usual = kernel->tile_rows;
    const bool saves_tiles = ot__whole_tiles(rows, height) / height ==
                             ot__whole_tiles(rows, usual) / usual; // of at most 18 rows

    return ot__is_avx512_on_intel(kernel) && plan->a_floats == 0 && plan->reads_b &&
           (saves_tiles || (rows >= MANY_ROWS && g->k >= DEEP)) &&
           (plan->is_sliced || !rows_clash(g, kernel));
}

// Rows of b that are contiguous are read where they lie, by the first tiles of a part at least;
// where all of b takes at most half of the second cache, by two. On Zen 3 with AVX2, GFLOP/s where
// b is copied and where both tiles of rows read it:
//
//   8 300 192  69  80     8 1000 256   75  68
//   8 512 64   65  78     8 1280 1000  76  71
//   10 512 64  73  90     10 256 512   79  74
//   12 512 128 78  84     10 784 128   78  81
//
// Tiles go down the panels of a b that is larger than the second cache: each panel is fetched while
// tiles multiply the one before. Zen 4, GFLOP/s where they go along blocks of b and down its panels
// (peak 118):
//
//                 AVX-512     AVX2                        AVX-512     AVX2
//   16 30522 768  39   97     32   85    16 4096 1024     72   109    55   75
//   64 30522 768  75   107    63   95    64 4096 1024     93   111    81   96
//   64 30528 768  92   111    83   104   256 4096 1024    107  113
//   128 30522 768 90   108    76   97    512 30522 768    102  108
//
// With AVX-512 they gain a little where it is transposed, too (512 768 768 a b^T 112 and 114, 1024
// 256 4096 113 and 115), but not on Intel, where it was not measured.
//
// The next panel is fetched while one is copied, but on Intel where rows clash (with it and
// without, AVX-512: 16 1024 1024 97 and 112, 24 1024 1024 113 and 126, 48 1024 1024 142 and 149, of
// 128 rows and more no difference). On Intel tiles with AVX-512 fetch none while they read
// the copy of `a` from the second cache (with it and without: 500 2500 1500 a^T b 205 and 210, 1000
// 1500 2000 205 and 207, 256 768 1024 217 and 220).
void ot__gemm_plan_reading_b(ot__gemm_plan *plan, const ot__gemm_kernel *kernel)
{
    const ot__gemm *g = &plan->g;
    const int64_t rows = (g->m + plan->n_row_parts - 1) / plan->n_row_parts;
    const bool is_far = b_is_far(g);
    const bool is_plain = !ot__dtype_is_narrow(g->b_type) && !ot__gemm_is_staged(g);
    const bool takes_panels =
        is_plain && (g->b_column == 1 || (plan->y_column == 1 && !ot__is_intel()));

    plan->reads_b = g->b_column == 1 && is_plain;
    plan->copies_b = plan->reads_b && !plan->is_sliced && rows > rows_reading(plan, kernel, is_far);
    plan->goes_down = plan->a_rows > 0 || (takes_panels && plan->a_floats == 0 && is_far &&
                                           g->m <= rows_waiting(kernel));
    plan->is_one_panel = plan->goes_down || (plan->reads_b && !plan->copies_b);
    plan->copies_ahead = copies_ahead(plan, kernel, is_far && plan->reads_b);
    plan->walks_b = plan->goes_down && takes_panels && !plan->copies_ahead && !plan->is_sliced &&
                    !(plan->a_rows > 0 && ot__is_avx512_on_intel(kernel)) &&
                    2 * g->n * g->k >= ot__second_cache_floats();
    plan->fetches_panels = !(ot__is_intel() && rows_clash(g, kernel));
    plan->takes_widest = takes_widest(plan, kernel);
}
