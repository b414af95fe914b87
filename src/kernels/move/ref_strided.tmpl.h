// SPDX-License-Identifier: Apache-2.0
// One element size of ref_strided.c: T has the size, FN names it.

static void FN(row)(T *y, int64_t y_stride, const T *x, int64_t x_stride, int64_t n)
{
    if (y_stride == 1 && x_stride == 1) {
        memcpy(y, x, (size_t)n * sizeof(T));
    } else if (y_stride == 1 && x_stride == 0) {
        for (int64_t i = 0; i < n; i++)
            y[i] = *x;
    } else {
        for (int64_t i = 0; i < n; i++)
            y[i * y_stride] = x[i * x_stride];
    }
}

// Items first .. last - 1: parts of rows along the last axis.
static void FN(rows)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const int inner = j->n_outer_axes;
    const int64_t y_stride = j->s->y_stride[inner], x_stride = j->s->x_stride[inner];

    for (int64_t item = first; item < last; item++) {
        const int64_t from = item % j->n_split * j->split;
        const int64_t n = OT_MIN(j->split, j->s->dim[inner] - from);
        int64_t y_at, x_at;

        outer_offsets(j, item / j->n_split, &y_at, &x_at);
        FN(row)
        ((T *)j->y + (y_at + from * y_stride), y_stride, (const T *)j->x + (x_at + from * x_stride),
         x_stride, n);
    }
}

// y (rows, cols; rows y_row apart) = x (cols; x_col apart, rows) transposed, in square blocks that
// stay in cache. Of each of x's rows several neighbouring blocks are read before the next ones:
// pages are visited less often.
static void FN(tile)(T *y, int64_t y_row, int64_t y_col, const T *x, int64_t x_col, int64_t rows,
                     int64_t cols)
{
    for (int64_t from = 0; from < cols; from += BLOCK) {
        const int64_t to = OT_MIN(from + BLOCK, cols);

        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = from; c < to; c++)
                y[r * y_row + c * y_col] = x[c * x_col + r];
        }
    }
}

// Items first .. last - 1: blocks of rows of the last two axes, of which x is contiguous along the
// first.
static void FN(tiles)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__strided *s = j->s;
    const int row = j->n_outer_axes, col = row + 1;

    for (int64_t item = first; item < last; item++) {
        const int64_t from = item % j->n_split * j->split;
        const int64_t n = OT_MIN(j->split, s->dim[row] - from);
        int64_t y_at, x_at;

        outer_offsets(j, item / j->n_split, &y_at, &x_at);
        FN(tile)
        ((T *)j->y + (y_at + from * s->y_stride[row]), s->y_stride[row], s->y_stride[col],
         (const T *)j->x + (x_at + from), s->x_stride[col], n, s->dim[col]);
    }
}
