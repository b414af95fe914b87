// SPDX-License-Identifier: Apache-2.0
// Gradients of the weights of depthwise convolutions in f32, compiled once per instruction set
// (OT_ISA). A lane is a channel: nothing is added across lanes. Row by row of x, which stays in the
// first cache while it meets every row of dy that it has a part in.
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd.h"

// Elements of the kernel whose sums stay in registers beside a vector for each of their rows and
// one of x.
#if OT_ISA_LEVEL == 2 // 32 registers
enum { TILE_ROWS = 3, TILE_COLUMNS = 8 };
#else
enum { TILE_ROWS = 2, TILE_COLUMNS = 5 };
#endif
enum { LANES = OT_VECTOR_LANES, PARTS = 2 };

// Kernel rows from one to TILE_ROWS, each with its row of dy, and kernel columns from the first of
// `sums` on, over n positions of dy.
typedef struct depthwise_tile {
    float *sums[TILE_ROWS];
    const float *dy[TILE_ROWS], *x;
    int64_t n, dy_step, x_step, column_step; // floats
} depthwise_tile;

// `rows` and `columns` are constants where these are called. Position i of dy, for the sums from
// row `part` on.
OT_SIMD_INLINE void add_position(ot__vector (*sum)[TILE_COLUMNS], const depthwise_tile *t,
                                 int64_t i, int part, int rows, int columns)
{
    const float *x = t->x + i * t->x_step;
    ot__vector dy[TILE_ROWS];

    OT_SIMD_UNROLL
    for (int r = 0; r < rows; r++)
        dy[r] = ot__vector_load(t->dy[r] + i * t->dy_step);
    OT_SIMD_UNROLL
    for (int c = 0; c < columns; c++) {
        const ot__vector column = ot__vector_load(x + c * t->column_step);

        OT_SIMD_UNROLL
        for (int r = 0; r < rows; r++)
            sum[r + part][c] += dy[r] * column;
    }
}

// Of a single row even and odd positions have sums of their own, because each addition waits for
// the one before.
OT_SIMD_INLINE void sum_taps(const depthwise_tile *t, int rows, int columns)
{
    const int parts = rows == 1 ? PARTS : 1;
    ot__vector sum[TILE_ROWS][TILE_COLUMNS];
    int64_t i = 0;

    OT_SIMD_UNROLL
    for (int r = 0; r < rows; r++)
        OT_SIMD_UNROLL
    for (int c = 0; c < columns; c++)
        sum[r][c] = ot__vector_load(t->sums[r] + c * LANES);
    if (parts > 1)
        OT_SIMD_UNROLL
    for (int c = 0; c < columns; c++)
        sum[1][c] = (ot__vector){0};
    for (; i + parts <= t->n; i += parts)
        OT_SIMD_UNROLL
    for (int part = 0; part < parts; part++)
        add_position(sum, t, i + part, part, rows, columns);
    for (; i < t->n; i++)
        add_position(sum, t, i, 0, rows, columns);
    if (parts > 1)
        OT_SIMD_UNROLL
    for (int c = 0; c < columns; c++)
        sum[0][c] += sum[1][c];
    OT_SIMD_UNROLL
    for (int r = 0; r < rows; r++)
        OT_SIMD_UNROLL
    for (int c = 0; c < columns; c++)
        ot__vector_store(t->sums[r] + c * LANES, sum[r][c]);
}

#define SUM_CASE(rows, columns)                                                                    \
    case columns:                                                                                  \
        sum_taps(t, rows, columns);                                                                \
        break;
#if OT_ISA_LEVEL == 2
#define SUM_CASES(rows)                                                                            \
    SUM_CASE(rows, 1)                                                                              \
    SUM_CASE(rows, 2)                                                                              \
    SUM_CASE(rows, 3)                                                                              \
    SUM_CASE(rows, 4) SUM_CASE(rows, 5) SUM_CASE(rows, 6) SUM_CASE(rows, 7) SUM_CASE(rows, 8)
#else
#define SUM_CASES(rows)                                                                            \
    SUM_CASE(rows, 1) SUM_CASE(rows, 2) SUM_CASE(rows, 3) SUM_CASE(rows, 4) SUM_CASE(rows, 5)
#endif
#define SUM_CASES_OF(rows)                                                                         \
    case rows:                                                                                     \
        switch (columns) {                                                                         \
            SUM_CASES(rows)                                                                        \
        }                                                                                          \
        break;
static void sum_any_taps(const depthwise_tile *t, int64_t rows, int64_t columns)
{
    switch (rows) {
        SUM_CASES_OF(1)
        SUM_CASES_OF(2)
#if OT_ISA_LEVEL == 2
        SUM_CASES_OF(3)
#endif
    }
}

// All columns of so many rows of the kernel, about the same number in each tile. `t` has the first.
static void sum_columns_of_rows(const ot__depthwise *d, const depthwise_tile *t, int64_t rows)
{
    const int64_t n_tiles = (d->kernel[1] + TILE_COLUMNS - 1) / TILE_COLUMNS;

    for (int64_t i = 0; i < n_tiles; i++) {
        const int64_t column = d->kernel[1] * i / n_tiles;
        depthwise_tile part = *t;

        for (int64_t r = 0; r < rows; r++)
            part.sums[r] += column * LANES;
        part.x += column * t->column_step;
        sum_any_taps(&part, rows, d->kernel[1] * (i + 1) / n_tiles - column);
    }
}

// ---- a row of x ----

// A block of channels of one image.
typedef struct depthwise_image {
    const ot__depthwise *d;
    const float *x, *dy;
    float *sums, *segment; // sums (kernel, LANES)
} depthwise_image;

// What n positions of dy from `first` on read of a row of x: where it lies, or, where that goes
// beyond the row, copied with zeros around.
static void read_segment(const depthwise_image *m, depthwise_tile *t, const float *row,
                         int64_t first)
{
    const ot__depthwise *d = m->d;
    const int64_t from = first * d->stride[1] - d->pad[1];
    const int64_t n = (t->n - 1) * d->stride[1] + (d->kernel[1] - 1) * d->dilation[1] + 1;
    const int64_t begin = OT_MIN(OT_MAX(-from, (int64_t)0), n);
    const int64_t end = OT_MAX(OT_MIN(d->in[1] - from, n), begin);
    const bool is_read = begin == 0 && end == n;
    const int64_t position = is_read ? d->x.position : LANES;

    t->x = is_read ? row + from * position : m->segment;
    t->x_step = d->stride[1] * position;
    t->column_step = d->dilation[1] * position;
    if (is_read)
        return;
    memset(m->segment, 0, (size_t)(begin * LANES) * sizeof(float));
    for (int64_t i = begin; i < end; i++)
        ot__vector_store(m->segment + i * LANES, ot__vector_load(row + (from + i) * d->x.position));
    memset(m->segment + end * LANES, 0, (size_t)((n - end) * LANES) * sizeof(float));
}

static void sum_row(const depthwise_image *m, int64_t i_row)
{
    const ot__depthwise *d = m->d;
    const float *row = m->x + i_row * d->x.row;

    for (int64_t first = 0; first < d->out[1]; first += d->outputs) {
        depthwise_tile t = {.n = OT_MIN(d->out[1] - first, d->outputs), .dy_step = d->dy.position};
        bool is_there = false;
        int64_t rows = 0;

        for (int64_t k = 0; k < d->kernel[0]; k++) {
            const int64_t at = i_row + d->pad[0] - k * d->dilation[0];

            if (at < 0 || at % d->stride[0] != 0 || at / d->stride[0] >= d->out[0])
                continue;
            if (!is_there)
                read_segment(m, &t, row, first);
            is_there = true;
            t.sums[rows] = m->sums + k * d->kernel[1] * LANES;
            t.dy[rows] = m->dy + at / d->stride[0] * d->dy.row + first * d->dy.position;
            if (++rows == TILE_ROWS) {
                sum_columns_of_rows(d, &t, rows);
                rows = 0;
            }
        }
        if (rows > 0)
            sum_columns_of_rows(d, &t, rows);
    }
}

// ---- images ----

static void add_bias(const ot__depthwise *d, const float *dy, float *sums)
{
    enum { SUMS = 4 }; // because each addition waits for the one before
    ot__vector sum[SUMS] = {ot__vector_load(sums)};

    for (int64_t i = 0; i < d->out[0]; i++) {
        const float *row = dy + i * d->dy.row;
        int64_t k = 0;

        for (; k + SUMS <= d->out[1]; k += SUMS)
            for (int s = 0; s < SUMS; s++)
                sum[s] += ot__vector_load(row + (k + s) * d->dy.position);
        for (; k < d->out[1]; k++)
            sum[0] += ot__vector_load(row + k * d->dy.position);
    }
    ot__vector_store(sums, (sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static void sum_images(const ot__depthwise *d, const float *x, const float *dy, int64_t n,
                       bool sums_dy, float *scratch)
{
    const int64_t n_sums = d->kernel[0] * d->kernel[1] * LANES;
    float *bias = scratch + n_sums;
    depthwise_image m = {.d = d, .sums = scratch, .segment = bias + LANES};

    memset(scratch, 0, (size_t)(n_sums + LANES) * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        m.x = x + i * d->x.image;
        m.dy = dy + i * d->dy.image;
        if (sums_dy)
            add_bias(d, m.dy, bias);
        for (int64_t row = 0; row < d->in[0]; row++)
            sum_row(&m, row);
    }
}

const ot__depthwise_kernel OT_ISA_NAME(ot__depthwise_kernel) = {
    .sum = sum_images,
    .lanes = LANES,
};
