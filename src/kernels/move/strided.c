// SPDX-License-Identifier: Apache-2.0
// Copies between strided arrays by vector code: as two-dimensional pieces, of which the last axis
// of y is one, and the other one that suits x. Threads share the pieces.
#include "kernels/kernels.h"

enum { ROWS = 64, PIECE_BYTES = 65536, PAR_BYTES = 65536 };

// Axes of pieces: the outer ones of the copy, then parts of a piece's rows and of its columns.
typedef struct strided_job {
    int n_axes;
    int64_t dim[OT__STRIDED_MAX_NDIM + 2], y_step[OT__STRIDED_MAX_NDIM + 2],
        x_step[OT__STRIDED_MAX_NDIM + 2]; // in bytes
    ot__move whole;                       // the rows and columns of all parts
    int64_t part_rows, part_cols, part_bytes;
    void (*copy)(const ot__move *piece);
} strided_job;

static void add_piece_axis(strided_job *j, int64_t dim, int64_t y_step, int64_t x_step)
{
    j->dim[j->n_axes] = dim;
    j->y_step[j->n_axes] = y_step;
    j->x_step[j->n_axes] = x_step;
    j->n_axes++;
}

static void copy_strided_pieces(void *context, int64_t first, int64_t last)
{
    const strided_job *j = context;
    const int n = j->n_axes;
    int64_t at[OT__STRIDED_MAX_NDIM + 2], rest = first;
    ot__move piece = j->whole;

    for (int k = n - 1; k >= 0; k--) {
        at[k] = rest % j->dim[k];
        rest /= j->dim[k];
        piece.y = (char *)piece.y + at[k] * j->y_step[k];
        piece.x = (const char *)piece.x + at[k] * j->x_step[k];
    }
    for (int64_t i = first; i < last; i++) {
        piece.rows = OT_MIN(j->part_rows, j->whole.rows - at[n - 2] * j->part_rows);
        piece.cols = OT_MIN(j->part_cols, j->whole.cols - at[n - 1] * j->part_cols);
        j->copy(&piece);
        for (int k = n - 1; k >= 0; k--) {
            piece.y = (char *)piece.y + j->y_step[k];
            piece.x = (const char *)piece.x + j->x_step[k];
            if (++at[k] < j->dim[k])
                break;
            piece.y = (char *)piece.y - at[k] * j->y_step[k];
            piece.x = (const char *)piece.x - at[k] * j->x_step[k];
            at[k] = 0;
        }
    }
}

// Elements that are neighbours in x and in y as one that is as large, if there is such a size.
static void join_elements(ot__strided *s)
{
    const int last = s->ndim - 1;
    const int64_t n = s->dim[last], size = n * (int64_t)s->size;

    if (last == 0 || s->x_stride[last] != 1 || s->y_stride[last] != 1 || n > 16 ||
        (size != 2 && size != 4 && size != 8 && size != 16) || s->x_offset % n != 0 ||
        s->y_offset % n != 0)
        return;
    for (int k = 0; k < last; k++)
        if (s->x_stride[k] % n != 0 || s->y_stride[k] % n != 0)
            return;
    for (int k = 0; k < last; k++) {
        s->x_stride[k] /= n;
        s->y_stride[k] /= n;
    }
    s->x_offset /= n;
    s->y_offset /= n;
    s->size = (size_t)size;
    s->ndim = last;
}

// The axis of a piece's rows: that along which x is contiguous if the last one is not, else the one
// before the last. -1: the copy has one axis.
static int row_axis(const ot__strided *s)
{
    const int last = s->ndim - 1;

    for (int k = 0; k < last && s->x_stride[last] > 1; k++)
        if (s->x_stride[k] == 1)
            return k;
    return last - 1;
}

static int index_of_size(size_t size)
{
    return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4;
}

// Which loop copies a piece. Bytes of what its rows and columns count: an element, or a byte where
// rows are contiguous.
static int64_t choose_loop(strided_job *j, size_t size)
{
    const ot__moves *moves = ot__moves_best();
    ot__move *p = &j->whole;

    if (p->y_col == 1 && p->x_col == 1) {
        j->copy = moves->copy_rows;
        p->cols *= (int64_t)size;
        p->y_row *= (int64_t)size;
        p->x_row *= (int64_t)size;
        return 1;
    }
    if (p->y_col == 1 && p->x_col == 0) {
        j->copy = moves->fill_rows[index_of_size(size)];
    } else if (p->y_col == 1 && p->x_row == 1) {
        j->copy = moves->transpose[index_of_size(size)];
    } else {
        j->copy = moves->steps[index_of_size(size)];
    }
    return (int64_t)size;
}

static void make_job(strided_job *j, void *y, const void *x, const ot__strided *s)
{
    const int last = s->ndim - 1, row = row_axis(s);
    const int64_t size = (int64_t)s->size;
    ot__move *p = &j->whole;
    int64_t unit;

    *p = (ot__move){.y = (char *)y + s->y_offset * size,
                    .x = (const char *)x + s->x_offset * size,
                    .rows = row < 0 ? 1 : s->dim[row],
                    .cols = s->dim[last],
                    .y_row = row < 0 ? 0 : s->y_stride[row],
                    .x_row = row < 0 ? 0 : s->x_stride[row],
                    .y_col = s->y_stride[last],
                    .x_col = s->x_stride[last]};
    for (int k = 0; k < last; k++)
        if (k != row)
            add_piece_axis(j, s->dim[k], s->y_stride[k] * size, s->x_stride[k] * size);
    unit = choose_loop(j, s->size);
    j->part_rows = OT_MIN(p->rows, ROWS);
    j->part_cols = OT_MIN(p->cols, PIECE_BYTES / unit);
    j->part_bytes = j->part_rows * j->part_cols * unit;
    add_piece_axis(j, (p->rows + j->part_rows - 1) / j->part_rows, j->part_rows * p->y_row * unit,
                   j->part_rows * p->x_row * unit);
    add_piece_axis(j, (p->cols + j->part_cols - 1) / j->part_cols, j->part_cols * p->y_col * unit,
                   j->part_cols * p->x_col * unit);
}

void ot__simd_strided_copy(void *y, const void *x, const ot__strided *s)
{
    ot__strided joined = *s;
    strided_job j = {0};
    int64_t n_pieces = 1;

    for (int k = 0; k < s->ndim; k++)
        if (s->dim[k] == 0)
            return;
    join_elements(&joined);
    make_job(&j, y, x, &joined);
    for (int k = 0; k < j.n_axes; k++)
        n_pieces *= j.dim[k];
    ot__parallel_for(n_pieces, PAR_BYTES / j.part_bytes + 1, copy_strided_pieces, &j);
}
