// SPDX-License-Identifier: Apache-2.0
// Images of f32 sampled at the positions of a grid, compiled once per instruction set (OT_ISA): a
// lane is a position. Elements and weights of a few positions are worked out once for all channels.
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
                                    const double *coordinate)
{
    const grid_axis a = *axis;
    double x[PIECE], slope[PIECE];

    OT_SIMD_LOOP
    for (int i = 0; i < PIECE; i++) {
        const grid_place place = find_grid_place(&a, mode, padding, coordinate[i]);

        x[i] = place.x;
        slope[i] = place.slope;
    }
    for (int k = 0; k < count_axis_taps(mode); k++) {
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
                                    bool has_slopes, const double *coordinate)
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

// Of `n` positions, with slopes or without, of which there are PIECE at most; the rest of the table
// is the last one's.
OT_SIMD_INLINE void find_table(table *t, const job *j, int64_t position, bool has_slopes, int n)
{
    const ot__grid_sample *s = j->s;
    const float *grid = j->grid + position * s->n_axes;

    t->n = 1;
    t->n_axes = 0;
    memset(t->offset[0], 0, sizeof t->offset[0]);
    for (int i = 0; i < PIECE; i++)
        t->weight[0][i] = 1;
    for (int a = OT__WINDOW_AXES - s->n_axes; a < OT__WINDOW_AXES; a++) {
        double coordinate[PIECE];
        axis_table axis;

        for (int i = 0; i < PIECE; i++)
            coordinate[i] = (double)grid[OT_MIN(i, n - 1) * s->n_axes + OT__WINDOW_AXES - 1 - a];
        find_axis_table(&axis, &j->axis[a], s, has_slopes, coordinate);
        add_axis_table(t, &axis, count_axis_taps(s->mode), has_slopes, (int32_t)s->in[a]);
    }
}

// The elements of a plane at one tap of the positions from `first` on. Lane by lane is faster than
// by gathering instructions.
OT_SIMD_INLINE ot__vector load_tap(const float *plane, const table *t, int tap, int first)
{
    const int32_t *offset = t->offset[tap] + first;
    ot__vector x;

    OT_SIMD_UNROLL
    for (int i = 0; i < OT_VECTOR_LANES; i++)
        x[i] = plane[offset[i]];
    return x;
}

// weight * x, and 0 where the weight is: x may be outside then, and not finite.
OT_SIMD_INLINE ot__vector weigh(const float *weight, ot__vector x)
{
    const ot__vector w = ot__vector_load(weight);
    const ot__vector_bits counts = (ot__vector_bits)(w != ot__vector_of(0));

    return w * (ot__vector)((ot__vector_bits)x & counts);
}

static job make_lanes_job(const ot__grid_sample *s, const float *grid)
{
    job j = {.grid = grid, .s = s};

    for (int a = 0; a < OT__WINDOW_AXES; a++)
        j.axis[a] = make_grid_axis(s, a);
    return j;
}

// Pieces of all images' positions.
static void walk_pieces(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__grid_sample *s = j->s;
    const int64_t n_pieces = (s->n_out + PIECE - 1) / PIECE;
    table t;

    for (int64_t piece = first; piece < last; piece++) {
        const int64_t image = piece / n_pieces, from = piece % n_pieces * PIECE;
        const int n = (int)OT_MIN((int64_t)PIECE, s->n_out - from);

        if (j->has_slopes) // compiled for each
            find_table(&t, j, image * s->n_out + from, true, n);
        else
            find_table(&t, j, image * s->n_out + from, false, n);
        j->at(j, &t, image, from, n);
    }
}

static void for_pieces(job *j)
{
    const int64_t n_pieces = (j->s->n_out + PIECE - 1) / PIECE;

    ot__parallel_for(j->s->batch * n_pieces, OT_PAR_MIN / (PIECE * (j->s->channels + 4)) + 1,
                     walk_pieces, j);
}

// ---- forward ----

OT_SIMD_INLINE void sample_plane(float *y, const float *plane, const table *t, int n_taps)
{
    for (int i = 0; i < PIECE; i += OT_VECTOR_LANES) {
        ot__vector sum = {0};

        for (int k = 0; k < n_taps; k++)
            sum += weigh(t->weight[k] + i, load_tap(plane, t, k, i));
        ot__vector_store(y + i, sum);
    }
}

OT_SIMD_INLINE void sample_channels(float *y, const float *x, const ot__grid_sample *s,
                                    const table *t, int n_taps, int n)
{
    for (int64_t c = 0; c < s->channels; c++, y += s->n_out, x += s->n_in) {
        float part[PIECE];

        sample_plane(n == PIECE ? y : part, x, t, n_taps);
        if (n < PIECE)
            memcpy(y, part, (size_t)n * sizeof *y);
    }
}

// Compiled for the usual numbers of taps.
static void sample_piece(const job *j, const table *t, int64_t image, int64_t from, int n)
{
    const ot__grid_sample *s = j->s;
    const float *x = j->x + image * s->channels * s->n_in;
    float *y = j->to + image * s->channels * s->n_out + from;

    if (t->n == 4)
        sample_channels(y, x, s, t, 4, n);
    else if (t->n == 1)
        sample_channels(y, x, s, t, 1, n);
    else
        sample_channels(y, x, s, t, t->n, n);
}

static void sample(float *y, const float *x, const float *grid, const ot__grid_sample *s)
{
    job j = make_lanes_job(s, grid);

    j.to = y;
    j.x = x;
    j.at = sample_piece;
    for_pieces(&j);
}

// ---- gradient of the images ----

// Tap after tap, as those of one position after the other often have an element in common.
OT_SIMD_INLINE void spread_plane(float *plane, const float *dy, const table *t, int n)
{
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < n; i++)
            if (t->weight[k][i] != 0)
                plane[t->offset[k][i]] += t->weight[k][i] * dy[i];
}

// Planes first .. last - 1: each gets what its own image has at every position.
static void spread_planes(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__grid_sample *s = j->s;
    table t;

    memset(j->to + first * s->n_in, 0, (size_t)((last - first) * s->n_in) * sizeof(float));
    while (first < last) {
        const int64_t image = first / s->channels;
        const int64_t behind = OT_MIN(last, (image + 1) * s->channels);

        for (int64_t from = 0; from < s->n_out; from += PIECE) {
            const int n = (int)OT_MIN((int64_t)PIECE, s->n_out - from);

            find_table(&t, j, image * s->n_out + from, false, n);
            for (int64_t plane = first; plane < behind; plane++)
                spread_plane(j->to + plane * s->n_in, j->dy + plane * s->n_out + from, &t, n);
        }
        first = behind;
    }
}

static void sample_dx(float *dx, const float *dy, const float *grid, const ot__grid_sample *s)
{
    job j = make_lanes_job(s, grid);

    j.to = dx;
    j.dy = dy;
    ot__parallel_for(s->batch * s->channels, OT_PAR_MIN / (4 * s->n_out + s->n_in + 1) + 1,
                     spread_planes, &j);
}

// ---- gradient of the grid ----

// Sums of all channels for each axis: dy times how the element grows along the axis.
OT_SIMD_INLINE void add_slopes(float (*sum)[PIECE], const float *dy, const float *plane,
                               const table *t, int n_taps, int n_axes)
{
    for (int i = 0; i < PIECE; i += OT_VECTOR_LANES) {
        ot__vector slope[OT__WINDOW_AXES] = {{0}};

        for (int k = 0; k < n_taps; k++) {
            const ot__vector x = load_tap(plane, t, k, i);

            for (int a = 0; a < n_axes; a++)
                slope[a] += weigh(t->slope[a][k] + i, x);
        }
        for (int a = 0; a < n_axes; a++)
            ot__vector_store(sum[a] + i,
                             ot__vector_load(sum[a] + i) + ot__vector_load(dy + i) * slope[a]);
    }
}

OT_SIMD_INLINE void add_channel_slopes(float (*sum)[PIECE], const float *dy, const float *x,
                                       const ot__grid_sample *s, const table *t, int n_taps,
                                       int n_axes, int n)
{
    float part[PIECE] = {0};

    for (int64_t c = 0; c < s->channels; c++, dy += s->n_out, x += s->n_in) {
        if (n < PIECE)
            memcpy(part, dy, (size_t)n * sizeof *dy);
        add_slopes(sum, n == PIECE ? dy : part, x, t, n_taps, n_axes);
    }
}

static void slope_piece(const job *j, const table *t, int64_t image, int64_t from, int n)
{
    const ot__grid_sample *s = j->s;
    const float *x = j->x + image * s->channels * s->n_in;
    const float *dy = j->dy + image * s->channels * s->n_out + from;
    float *to = j->to + (image * s->n_out + from) * s->n_axes;
    float sum[OT__WINDOW_AXES][PIECE] = {{0}};

    if (t->n == 4 && t->n_axes == 2)
        add_channel_slopes(sum, dy, x, s, t, 4, 2, n);
    else
        add_channel_slopes(sum, dy, x, s, t, t->n, t->n_axes, n);
    for (int i = 0; i < n; i++)
        for (int a = 0; a < s->n_axes; a++)
            to[i * s->n_axes + a] = sum[s->n_axes - 1 - a][i];
}

static void sample_dgrid(float *dgrid, const float *dy, const float *x, const float *grid,
                         const ot__grid_sample *s)
{
    job j = make_lanes_job(s, grid);

    j.to = dgrid;
    j.dy = dy;
    j.x = x;
    j.has_slopes = true;
    j.at = slope_piece;
    for_pieces(&j);
}

const ot__samplers OT_ISA_NAME(ot__samplers) = {sample, sample_dx, sample_dgrid, PIECE};
