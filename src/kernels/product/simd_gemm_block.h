// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: a block of b, and the panels it is cut into.
#ifndef OT_KERNELS_SIMD_GEMM_BLOCK_H
#define OT_KERNELS_SIMD_GEMM_BLOCK_H

#include "kernels/kernels.h"

// As tiles read it, in n_panels panels of whole vectors: the first n_wider have one
// more than the others.
typedef struct block {
    int64_t columns, n_panels, vectors, n_wider, k, depth;
    float *copy;
    bool is_one_panel;   // in the copy: at a time, or at the end
    const float *origin; // where whole panels are read; NULL: in the copy
    bool copies;         // them meanwhile
} block;

static int64_t panel_vector(const block *x, int64_t panel)
{
    return panel * x->vectors + OT_MIN(panel, x->n_wider);
}

static int64_t panel_width(const block *x, int64_t panel)
{
    return (panel_vector(x, panel + 1) - panel_vector(x, panel)) * LANES;
}

// The first column of a panel. The last begins before the end of the one before it, so that it is
// whole, where there is another.
static int64_t panel_column(const block *x, int64_t panel)
{
    const int64_t whole = OT_MAX(x->columns - panel_width(x, panel), (int64_t)0);

    return OT_MIN(panel_vector(x, panel) * LANES, whole);
}

static float *panel_copy(const block *x, int64_t panel)
{
    return x->copy + (x->is_one_panel ? 0 : panel_vector(x, panel) * LANES * x->depth);
}

// Panels from `p` on that are as wide as it and whole, or not; one where y is transposed.
static int64_t count_alike(const ot__gemm_plan *plan, const block *x, int64_t p)
{
    const int64_t end = p < x->n_wider ? x->n_wider : x->n_panels;
    const bool ends_whole = panel_vector(x, end) * LANES <= x->columns;

    return plan->y_column != 1 ? 1 : OT_MAX(end - p - !ends_whole, 1);
}

static block gemm_block_of(const ot__gemm_plan *plan, const ot__gemm_part *part, int64_t k,
                           int64_t depth, float *copy)
{
    const int64_t columns = part->column_end - part->column;
    const int64_t n_vectors = (columns + LANES - 1) / LANES;
    const bool is_one = n_vectors == TILE_VECTORS && plan->a_floats == 0;
    const bool fills_widest = n_vectors % TILE_VECTORS == 0;
    const bool fills_usual = n_vectors % USUAL_VECTORS == 0;
    const bool is_widest = plan->takes_widest && fills_widest && !fills_usual;
    const int64_t most = is_one || is_widest ? TILE_VECTORS : USUAL_VECTORS;
    const int64_t n_panels = (n_vectors + most - 1) / most;

    return (block){.columns = columns,
                   .n_panels = n_panels,
                   .vectors = n_vectors / n_panels,
                   .n_wider = n_vectors % n_panels,
                   .k = k,
                   .depth = depth,
                   .copy = copy};
}

static int64_t most_vectors(const block *x)
{
    return x->vectors + (x->n_wider > 0);
}

#endif
