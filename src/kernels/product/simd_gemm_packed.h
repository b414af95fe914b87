// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: products with a b that was packed before.
#ifndef OT_KERNELS_SIMD_GEMM_PACKED_H
#define OT_KERNELS_SIMD_GEMM_PACKED_H

#include "kernels/kernels.h"
#include "kernels/product/simd_gemm_copy.h"
#include "kernels/product/simd_gemm_tile.h"

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
        operands o = {.a = a + row * a_row,
                      .b = panels,
                      .copy = buffer, // nothing is left there
                      .a_row = a_row,
                      .a_k = 1,
                      .b_k = width,
                      .b_next = width * p->depth,
                      .depth = p->depth};
        float *to = y + row * y_row;
        target out = {.y = fits ? to : buffer,
                      .y_row = fits ? y_row : width,
                      .next = width,
                      .alpha = 1,
                      .accumulates = fits && p->accumulates,
                      .fetches = true};

        multiply(rows, width / LANES, OT_MAX(n_whole, 1), &out, &o, FAR);
        for (int64_t i = 0; !fits && i < rows; i++)
            for (int64_t j = 0; j < p->columns; j++)
                to[i * y_row + j] =
                    buffer[i * width + j] + (p->accumulates ? to[i * y_row + j] : 0);
    }
}

#endif
