// SPDX-License-Identifier: Apache-2.0
// Elements and weights of a few positions of a grid at once, for simd_grid_sample.c alone.
#ifndef OT_KERNELS_SIMD_GRID_TABLES_H
#define OT_KERNELS_SIMD_GRID_TABLES_H

#include "kernels/sample/grid_taps.h"

#include <string.h>

enum { PIECE = 16, AXIS_TAPS = 4 };

// For each of PIECE positions: the elements of a plane that make the one there.
typedef struct table {
    int n, n_axes;
    int32_t offset[OT__GRID_TAPS][PIECE];
    float weight[OT__GRID_TAPS][PIECE], slope[OT__WINDOW_AXES][OT__GRID_TAPS][PIECE];
} table;

// The same along one axis.
typedef struct axis_table {
    int32_t index[AXIS_TAPS][PIECE];
    float weight[AXIS_TAPS][PIECE], slope[AXIS_TAPS][PIECE];
} axis_table;

typedef struct job {
    float *to;
    const float *dy, *x, *grid;
    const ot__grid_sample *s;
    grid_axis axis[OT__WINDOW_AXES];
    bool has_slopes; // of the table
    // What is made of the positions of an image from `from` on.
    void (*at)(const struct job *j, const table *t, int64_t image, int64_t from, int n);
} job;

OT_SIMD_INLINE void fill_axis_table(axis_table *t, const grid_axis *axis, ot__grid_mode mode,
                                    ot__grid_padding padding, bool has_slopes,
                                    const float *coordinate)
{
    const grid_axis a = *axis;
    double x[PIECE], slope[PIECE];

    OT_SIMD_ROLLED
    OT_SIMD_LOOP
    for (int i = 0; i < PIECE; i++) {
        const grid_place place = find_grid_place(&a, mode, padding, (double)coordinate[i]);

        x[i] = place.x;
        slope[i] = place.slope;
    }
    for (int k = 0; k < count_axis_taps(mode); k++) {
        OT_SIMD_ROLLED
        OT_SIMD_LOOP
        for (int i = 0; i < PIECE; i++) {
            const grid_tap tap = find_tap(&a, mode, padding, (grid_place){x[i], slope[i]}, k);

            t->index[k][i] = tap.index;
            t->weight[k][i] = (float)tap.weight;
            if (has_slopes)
                t->slope[k][i] = (float)tap.slope;
        }
    }
}

OT_SIMD_INLINE void find_axis_table(axis_table *t, const grid_axis *a, const ot__grid_sample *s,
                                    bool has_slopes, const float *coordinate)
{
#define OF_MODE(mode_, padding_)                                                                   \
    if (s->mode == (mode_) && s->padding == (padding_))                                            \
    fill_axis_table(t, a, mode_, padding_, has_slopes, coordinate)
    OF_MODE(OT__GRID_LINEAR, OT__GRID_ZEROS);
    OF_MODE(OT__GRID_LINEAR, OT__GRID_BORDER);
    OF_MODE(OT__GRID_LINEAR, OT__GRID_REFLECTION);
    OF_MODE(OT__GRID_NEAREST, OT__GRID_ZEROS);
    OF_MODE(OT__GRID_NEAREST, OT__GRID_BORDER);
    OF_MODE(OT__GRID_NEAREST, OT__GRID_REFLECTION);
    OF_MODE(OT__GRID_CUBIC, OT__GRID_ZEROS);
    OF_MODE(OT__GRID_CUBIC, OT__GRID_BORDER);
    OF_MODE(OT__GRID_CUBIC, OT__GRID_REFLECTION);
#undef OF_MODE
}

OT_SIMD_INLINE void find_linear_table(axis_table *t, const grid_axis *a, ot__grid_padding padding,
                                      const float *coordinate)
{
    if (padding == OT__GRID_ZEROS)
        fill_axis_table(t, a, OT__GRID_LINEAR, OT__GRID_ZEROS, false, coordinate);
    else if (padding == OT__GRID_BORDER)
        fill_axis_table(t, a, OT__GRID_LINEAR, OT__GRID_BORDER, false, coordinate);
    else
        fill_axis_table(t, a, OT__GRID_LINEAR, OT__GRID_REFLECTION, false, coordinate);
}

// Every tap so far with every one along a further axis of so many elements. From the last one on,
// so that what is read has not been written yet.
OT_SIMD_INLINE void add_axis_table(table *t, const axis_table *axis, int n_taps, bool has_slopes,
                                   int32_t extent)
{
    for (int k = t->n - 1; k >= 0; k--)
        for (int m = n_taps - 1; m >= 0; m--) {
            const int to = k * n_taps + m;

            for (int a = 0; has_slopes && a < t->n_axes; a++)
                for (int i = 0; i < PIECE; i++)
                    t->slope[a][to][i] = t->slope[a][k][i] * axis->weight[m][i];
            for (int i = 0; has_slopes && i < PIECE; i++)
                t->slope[t->n_axes][to][i] = t->weight[k][i] * axis->slope[m][i];
            for (int i = 0; i < PIECE; i++)
                t->weight[to][i] = t->weight[k][i] * axis->weight[m][i];
            for (int i = 0; i < PIECE; i++)
                t->offset[to][i] = t->offset[k][i] * extent + axis->index[m][i];
        }
    t->n *= n_taps;
    t->n_axes++;
}

// Of `n` positions by axis of the image, of which there are PIECE at most; the rest is the last
// one's.
OT_SIMD_INLINE void read_coordinates(float (*to)[PIECE], const job *j, int64_t position, int n)
{
    const int n_axes = j->s->n_axes;
    const float *grid = j->grid + position * n_axes;

    if (n == PIECE && n_axes == 2) {
        for (int i = 0; i < PIECE; i++) {
            to[2][i] = grid[2 * i];
            to[1][i] = grid[2 * i + 1];
        }
        return;
    }
    for (int a = OT__WINDOW_AXES - n_axes; a < OT__WINDOW_AXES; a++)
        for (int i = 0; i < PIECE; i++)
            to[a][i] = grid[OT_MIN(i, n - 1) * n_axes + OT__WINDOW_AXES - 1 - a];
}

// Of `n` positions, with slopes or without.
OT_SIMD_INLINE void find_table(table *t, const job *j, int64_t position, bool has_slopes, int n)
{
    const ot__grid_sample *s = j->s;
    float coordinate[OT__WINDOW_AXES][PIECE];

    read_coordinates(coordinate, j, position, n);
    t->n = 1;
    t->n_axes = 0;
    memset(t->offset[0], 0, sizeof t->offset[0]);
    for (int i = 0; i < PIECE; i++)
        t->weight[0][i] = 1;
    for (int a = OT__WINDOW_AXES - s->n_axes; a < OT__WINDOW_AXES; a++) {
        axis_table axis;

        find_axis_table(&axis, &j->axis[a], s, has_slopes, coordinate[a]);
        add_axis_table(t, &axis, count_axis_taps(s->mode), has_slopes, (int32_t)s->in[a]);
    }
}

static job make_lanes_job(const ot__grid_sample *s, const float *grid)
{
    job j = {.grid = grid, .s = s};

    for (int a = 0; a < OT__WINDOW_AXES; a++)
        j.axis[a] = make_grid_axis(s, a);
    return j;
}

#endif
