// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: what tiles fetch, or copy, for others while they multiply. A tile takes
// thousands of cycles, in which memory brings what the processor's own prefetching does not see
// coming: rows far apart.
#ifndef OT_KERNELS_SIMD_GEMM_WALK_H
#define OT_KERNELS_SIMD_GEMM_WALK_H

#include "kernels/kernels.h"
#include "kernels/product/simd_gemm_tile.h"

// The same columns of as many rows of `a`, below so many: tiles have `height` of them.
static walk walk_below(const operands *o, int64_t rows, int64_t height)
{
    const int64_t steps = (o->depth + height - 1) / height;

    return (walk){.at = o->a + rows * o->a_row,
                  .k = height,
                  .first = steps,
                  .steps = steps,
                  .jump = o->a_row - steps * height,
                  .next = height * o->a_row};
}

// Lines of a row of the panel that comes next, each with those of the other rows, and how many of
// them a tile fetches. Where columns of b are contiguous, as many columns as a line has floats.
typedef struct panel_ahead {
    const float *at; // NULL: nothing is fetched
    int64_t lines, lines_a_tile;
} panel_ahead;

// While n_tiles multiply panel p of the block x of b; `again`: after the last comes the first of
// the same block.
static panel_ahead panel_after(const ot__gemm_plan *plan, const float *b, const block *x, int64_t p,
                               int64_t n_tiles, bool again)
{
    const ot__gemm *g = &plan->g;
    const bool is_last = p + 1 == x->n_panels, goes_on = is_last && !again;
    const int64_t next = is_last ? 0 : p + 1;
    panel_ahead a = {.lines = (panel_width(x, next) + CACHE_LINE - 1) / CACHE_LINE};

    if (!plan->walks_b || x->depth < SHORT_DEPTH || (goes_on && x->k + x->depth == g->k))
        return a;
    if (g->b_column == 1 && g->b_row % CACHE_LINE != 0)
        a.lines++;
    a.at = b + panel_column(x, next) * g->b_column + (x->k + (goes_on ? x->depth : 0)) * g->b_row;
    a.lines_a_tile = n_tiles >= a.lines ? 1 : 2;
    return a;
}

// How many of the n tiles from number t on fetch the next panel, all with those lines of it that
// belong to t first; or how many do not.
static int64_t walk_panel(operands *o, const panel_ahead *a, const ot__gemm *g, int64_t t,
                          int64_t n)
{
    const bool is_turned = g->b_column != 1;
    const int64_t apart = CACHE_LINE * g->b_column;
    const int64_t steps = is_turned ? (o->depth + CACHE_LINE - 1) / CACHE_LINE : o->depth;

    o->walk.at = NULL;
    if (a->at == NULL || t * a->lines_a_tile >= a->lines)
        return n;
    o->walk = (walk){.at = a->at + t * a->lines_a_tile * apart,
                     .k = is_turned ? CACHE_LINE : g->b_row,
                     .first = steps,
                     .steps = steps,
                     .jump = is_turned ? g->b_column - steps * CACHE_LINE : 0,
                     .more = (a->lines_a_tile - 1) * apart,
                     .next = a->lines_a_tile * apart};
    return OT_MIN(n, (a->lines - 1) / a->lines_a_tile + 1 - t);
}

// What tile t of the n_tiles that multiply a slice x of b fetches of the next: as many of its
// lines, which lie one after the other but for the columns of other parts.
static walk walk_slice(const ot__gemm *g, const float *b, const block *x, int64_t t,
                       int64_t n_tiles)
{
    const int64_t row_lines = (x->columns + CACHE_LINE - 1) / CACHE_LINE;
    const int64_t lines = row_lines * x->depth, first = lines * t / n_tiles;
    const int64_t a_step = (lines + n_tiles * x->depth - 1) / (n_tiles * x->depth);
    const int64_t row = first / row_lines, at = first % row_lines;
    const int64_t steps = OT_MAX(row_lines / a_step, 1);

    if (x->k + x->depth >= g->k)
        return (walk){.at = NULL};
    return (walk){.at = b + (x->k + x->depth + row) * g->b_row + at * CACHE_LINE,
                  .k = a_step * CACHE_LINE,
                  .first = OT_MAX((row_lines - at) / a_step, 1),
                  .steps = steps,
                  .jump = g->b_row - steps * a_step * CACHE_LINE,
                  .more = a_step > 1 ? CACHE_LINE : 0};
}

// The panel that comes after panel p, for n_tiles to copy while they multiply that: a row with each
// element of k that all of them have.
static next_panel panel_to_copy(const ot__gemm_plan *plan, const float *b, const block *x,
                                int64_t p, int64_t n_tiles, bool again, float *to)
{
    enum { STEPS_AHEAD = 24 };
    const int64_t row = plan->g.b_row, next = p + 1 < x->n_panels ? p + 1 : 0;

    if (!plan->copies_ahead || x->n_panels == 1 || n_tiles == 0 || (next == 0 && !again))
        return (next_panel){0};
    return (next_panel){.from = b + panel_column(x, next) + x->k * row,
                        .to = to,
                        .row = row,
                        .width = panel_width(x, next),
                        .ahead = (1 + STEPS_AHEAD / n_tiles) * row,
                        .every = n_tiles,
                        .wait = 1};
}

#endif
