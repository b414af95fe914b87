// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: lines of y, and what is done to them when their sums are complete.
#ifndef OT_KERNELS_SIMD_GEMM_LINES_H
#define OT_KERNELS_SIMD_GEMM_LINES_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd_floats.h"

enum { LINE = 512 }; // of what is widened: at least STAGED_WIDTH and STAGED_ROWS

// Piece i of n of a part's columns, in whole vectors.
static ot__gemm_part piece_of_columns(const ot__gemm_part *part, int64_t i, int64_t n)
{
    const int64_t n_vectors = (part->column_end - part->column + LANES - 1) / LANES;
    const int64_t end = part->column + n_vectors * (i + 1) / n * LANES;

    return (ot__gemm_part){.row = part->row,
                           .row_end = part->row_end,
                           .column = part->column + n_vectors * i / n * LANES,
                           .column_end = OT_MIN(end, part->column_end)};
}

// n sums become, or are added to, what stands side by side in y.
OT_SIMD_INLINE void store_line(float *y, const float *sums, int64_t n, bool accumulates)
{
    OT_SIMD_LOOP
    for (int64_t i = 0; i < n; i++)
        y[i] = accumulates ? y[i] + sums[i] : sums[i];
}

static size_t operand_size(ot_dtype type)
{
    return ot__dtype_is_narrow(type) ? sizeof(uint16_t) : sizeof(float);
}

// Elements at .. at + n - 1 of x, in `buffer` unless they are f32.
static const float *widened_line(const void *x, int64_t at, int64_t n, ot_dtype type, float *buffer)
{
    if (!ot__dtype_is_narrow(type))
        return (const float *)x + at;
    OT_ISA_NAME(ot__floats).widen[type](buffer, (const uint16_t *)x + at, n);
    return buffer;
}

// What is added to a line whose sums are complete, and the function applied to it. `at`: where the
// line is in y.
static void finish_line(const ot__gemm_plan *plan, const ot__gemm_data *data, float *line,
                        int64_t at, const void *c, int64_t c_step, int64_t n)
{
    float buffer[LINE];
    const float *x[OT__TILE_INPUTS] = {line, NULL};
    const float beta = (float)plan->g.beta;

    if (c != NULL && c_step == 1) {
        const float *addend = widened_line(c, 0, n, plan->g.c_type, buffer);

        OT_SIMD_LOOP
        for (int64_t j = 0; j < n; j++)
            line[j] += beta * addend[j];
    } else if (c != NULL) {
        for (int64_t j = 0; j < n; j++)
            line[j] += beta * *widened_line(c, j * c_step, 1, plan->g.c_type, buffer);
    }
    if (data->epilogue.function == NULL)
        return;
    if (data->epilogue.other != NULL)
        x[1] = widened_line(data->epilogue.other, at, n, plan->g.y_type, buffer);
    data->epilogue.function(line, x, n, data->epilogue.attrs);
}

// A line of a part that is contiguous in y: number i, of its rows or, when transposed, columns.
typedef struct line {
    int64_t at, n; // in y
    const void *c; // its first addend
    int64_t c_step;
} line;

static line output_line(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *p, int64_t i)
{
    const ot__gemm *g = &plan->g;
    const bool across = plan->y_column == 1;
    const int64_t row = across ? p->row + i : p->row, column = across ? p->column : p->column + i;
    const int64_t c_at = row * g->c_row + column * g->c_column;

    return (line){
        .at = row * g->y_row + column * plan->y_column,
        .n = across ? p->column_end - p->column : p->row_end - p->row,
        .c =
            data->c == NULL ? NULL : (const char *)data->c + (size_t)c_at * operand_size(g->c_type),
        .c_step = across ? g->c_column : g->c_row,
    };
}

static int64_t count_lines(const ot__gemm_plan *plan, const ot__gemm_part *p)
{
    return plan->y_column == 1 ? p->row_end - p->row : p->column_end - p->column;
}

// Lines first .. last - 1.
static void finish_lines(const ot__gemm_plan *plan, const ot__gemm_data *data,
                         const ot__gemm_part *p, int64_t first, int64_t last)
{
    if (data->c == NULL && data->epilogue.function == NULL)
        return;
    for (int64_t i = first; i < last; i++) {
        const line l = output_line(plan, data, p, i);

        finish_line(plan, data, (float *)data->y + l.at, l.at, l.c, l.c_step, l.n);
    }
}

// ---- results that are rounded wait for it in scratch ----

static void load_staged(const ot__gemm_plan *plan, const ot__gemm_data *data,
                        const ot__gemm_part *p, float *staged, int64_t pitch)
{
    for (int64_t i = 0; i < count_lines(plan, p); i++) {
        const line l = output_line(plan, data, p, i);
        float *to = staged + i * pitch;
        const float *from = widened_line(data->y, l.at, l.n, plan->g.y_type, to);

        if (from != to)
            memcpy(to, from, (size_t)l.n * sizeof *to);
    }
}

static void store_staged(const ot__gemm_plan *plan, const ot__gemm_data *data,
                         const ot__gemm_part *p, float *staged, int64_t pitch)
{
    const ot_dtype type = plan->g.y_type;

    for (int64_t i = 0; i < count_lines(plan, p); i++) {
        const line l = output_line(plan, data, p, i);
        float *from = staged + i * pitch;

        finish_line(plan, data, from, l.at, l.c, l.c_step, l.n);
        if (ot__dtype_is_narrow(type))
            OT_ISA_NAME(ot__floats).narrow[type]((uint16_t *)data->y + l.at, from, l.n);
        else
            memcpy((float *)data->y + l.at, from, (size_t)l.n * sizeof *from);
    }
}

#endif
