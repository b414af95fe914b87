// SPDX-License-Identifier: Apache-2.0
// Images of f32 sampled at the positions of a grid, compiled once per instruction set (OT_ISA): a
// lane is a position. Elements and weights of a few positions are worked out once for all channels.
#include "kernels/sample/simd_grid_tables.h"

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

static void for_pieces(job *j, void (*walk)(void *context, int64_t first, int64_t last))
{
    const int64_t n_pieces = (j->s->n_out + PIECE - 1) / PIECE;

    ot__parallel_for(j->s->batch * n_pieces, OT_PAR_MIN / (PIECE * (j->s->channels + 4)) + 1, walk,
                     j);
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

// ---- forward where a position lies between two elements of the last axis: one load for both ----

enum { LAST_AXIS = OT__WINDOW_AXES - 1, PAIR_ROWS = 4, VECTOR_PAIRS = OT_VECTOR_LANES / 2 };

typedef uint64_t vector_pairs
    __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(8), may_alias));
typedef double pair __attribute__((aligned(4), may_alias));
typedef uint32_t vector_half_bits
    __attribute__((vector_size(2 * OT_VECTOR_LANES), aligned(4), may_alias));

// For each of PIECE positions: where the pairs are in a plane, and the weights of both elements.
typedef struct pair_table {
    int n;
    int32_t offset[PAIR_ROWS][PIECE];
    float weight[PAIR_ROWS][2 * PIECE];
} pair_table;

// The pairs of the last axis alone. One begins an element earlier where its position is at the end
// of the axis, so that both elements are in the image.
OT_SIMD_INLINE void start_pairs(pair_table *t, const axis_table *axis, int32_t extent)
{
    t->n = 1;
    for (int i = 0; i < PIECE; i++) {
        const int32_t a = axis->index[0][i], b = axis->index[1][i], at = OT_MIN(a, extent - 2);
        const float of_a = axis->weight[0][i], of_b = axis->weight[1][i];

        t->offset[0][i] = at;
        t->weight[0][2 * i] = (a == at ? of_a : 0) + (b == at ? of_b : 0);
        t->weight[0][2 * i + 1] = (a == at ? 0 : of_a) + (b == at ? 0 : of_b);
    }
}

// Every pair so far at both places along an axis whose elements are `stride` apart.
OT_SIMD_INLINE void add_pair_rows(pair_table *t, const axis_table *axis, int32_t stride)
{
    for (int k = 0; k < t->n; k++)
        for (int m = 1; m >= 0; m--) {
            const int to = m * t->n + k;

            for (int i = 0; i < PIECE; i++)
                t->offset[to][i] = t->offset[k][i] + axis->index[m][i] * stride;
            for (int i = 0; i < PIECE; i++) {
                t->weight[to][2 * i] = t->weight[k][2 * i] * axis->weight[m][i];
                t->weight[to][2 * i + 1] = t->weight[k][2 * i + 1] * axis->weight[m][i];
            }
        }
    t->n *= 2;
}

OT_SIMD_INLINE void find_pairs(pair_table *t, const job *j, int64_t position, int n)
{
    const ot__grid_sample *s = j->s;
    float coordinate[OT__WINDOW_AXES][PIECE] = {{0}};
    int32_t stride = (int32_t)s->in[LAST_AXIS];
    axis_table axis;

    read_coordinates(coordinate, j, position, n);
    find_linear_table(&axis, &j->axis[LAST_AXIS], s->padding, coordinate[LAST_AXIS]);
    start_pairs(t, &axis, stride);
    for (int a = LAST_AXIS - 1; a >= OT__WINDOW_AXES - s->n_axes; a--) {
        find_linear_table(&axis, &j->axis[a], s->padding, coordinate[a]);
        add_pair_rows(t, &axis, stride);
        stride *= (int32_t)s->in[a];
    }
}

OT_SIMD_INLINE ot__vector load_pairs(const float *plane, const int32_t *offset)
{
#define PAIR(i) *(const pair *)(const void *)(plane + offset[i])
#define TWO_PAIRS(i) PAIR(i), PAIR((i) + 1)
#if OT_VECTOR_LANES == 16
    return (ot__vector)(ot__vector_wide){TWO_PAIRS(0), TWO_PAIRS(2), TWO_PAIRS(4), TWO_PAIRS(6)};
#elif OT_VECTOR_LANES == 8
    return (ot__vector)(ot__vector_wide){TWO_PAIRS(0), TWO_PAIRS(2)};
#else
    return (ot__vector)(ot__vector_wide){TWO_PAIRS(0)};
#endif
#undef TWO_PAIRS
#undef PAIR
}

OT_SIMD_INLINE void store_sums_of_pairs(float *y, ot__vector v)
{
    const vector_pairs sum = (vector_pairs)(v + (ot__vector)((vector_pairs)v >> 32));

    *(vector_half_bits *)(void *)y = __builtin_convertvector(sum, vector_half_bits);
}

OT_SIMD_INLINE void sample_plane_pairs(float *y, const float *plane, const pair_table *t, int n)
{
    for (int i = 0; i < PIECE; i += VECTOR_PAIRS) {
        ot__vector sum = {0};

        for (int k = 0; k < n; k++)
            sum += weigh(t->weight[k] + 2 * i, load_pairs(plane, t->offset[k] + i));
        store_sums_of_pairs(y + i, sum);
    }
}

OT_SIMD_INLINE void sample_channel_pairs(float *y, const float *x, const ot__grid_sample *s,
                                         const pair_table *t, int n_rows, int n)
{
    for (int64_t c = 0; c < s->channels; c++, y += s->n_out, x += s->n_in) {
        float part[PIECE];

        sample_plane_pairs(n == PIECE ? y : part, x, t, n_rows);
        if (n < PIECE)
            memcpy(y, part, (size_t)n * sizeof *y);
    }
}

// As walk_pieces().
static void walk_pairs(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__grid_sample *s = j->s;
    const int64_t n_pieces = (s->n_out + PIECE - 1) / PIECE;
    pair_table t;

    for (int64_t piece = first; piece < last; piece++) {
        const int64_t image = piece / n_pieces, from = piece % n_pieces * PIECE;
        const int n = (int)OT_MIN((int64_t)PIECE, s->n_out - from);
        const float *x = j->x + image * s->channels * s->n_in;
        float *y = j->to + image * s->channels * s->n_out + from;

        find_pairs(&t, j, image * s->n_out + from, n);
        if (t.n == 2) // compiled for images of two axes
            sample_channel_pairs(y, x, s, &t, 2, n);
        else
            sample_channel_pairs(y, x, s, &t, t.n, n);
    }
}

static void sample(float *y, const float *x, const float *grid, const ot__grid_sample *s)
{
    job j = make_lanes_job(s, grid);

    j.to = y;
    j.x = x;
    j.at = sample_piece;
    for_pieces(&j, s->mode == OT__GRID_LINEAR && s->in[LAST_AXIS] > 1 ? walk_pairs : walk_pieces);
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
    for_pieces(&j, walk_pieces);
}

const ot__samplers OT_ISA_NAME(ot__samplers) = {sample, sample_dx, sample_dgrid, PIECE};
