// SPDX-License-Identifier: Apache-2.0
// One element size of simd_moves.c: T has the size, FN names it. TURN: transposes as many vectors
// as a lane has elements.

typedef T FN(element) __attribute__((aligned(1), may_alias));

// Each row of y is one element of x.
static void FN(fill_rows)(const ot__move *p)
{
    const int64_t cols = p->cols;

    for (int64_t r = 0; r < p->rows; r++) {
        FN(element) *y = (FN(element) *)p->y + r * p->y_row;
        const T x = ((const FN(element) *)p->x)[r * p->x_row];

        for (int64_t c = 0; c < cols; c++)
            y[c] = x;
    }
}

static void FN(steps)(const ot__move *p)
{
    const int64_t cols = p->cols, y_col = p->y_col, x_col = p->x_col;

    for (int64_t r = 0; r < p->rows; r++) {
        FN(element) *y = (FN(element) *)p->y + r * p->y_row;
        const FN(element) *x = (const FN(element) *)p->x + r * p->x_row;

        for (int64_t c = 0; c < cols; c++)
            y[c * y_col] = x[c * x_col];
    }
}

// y_col = 1 and x_row = 1: rows from `first` on, a few columns at a time, one by one.
static void FN(transpose_rest)(const ot__move *p, int64_t first)
{
    enum { COLUMNS = 512 };
    const int64_t x_col = p->x_col;

    for (int64_t from = 0; from < p->cols; from += COLUMNS) {
        const int64_t to = OT_MIN(from + COLUMNS, p->cols);

        for (int64_t r = first; r < p->rows; r++) {
            FN(element) *y = (FN(element) *)p->y + r * p->y_row;
            const FN(element) *x = (const FN(element) *)p->x + r;

            for (int64_t c = from; c < to; c++)
                y[c] = x[c * x_col];
        }
    }
}

#ifdef TURN
enum {
    FN(EACH) = LANE_BYTES / sizeof(T),
    FN(WIDTH) = FN(EACH) * N_LANES,
    FN(LINE) = LINE_BYTES / sizeof(T)
};

// y (EACH rows, y_row apart; n) = x (n, x_col apart; EACH) transposed.
OT_SIMD_INLINE void FN(transpose_band)(FN(element) * y, int64_t y_row, const FN(element) * x,
                                       int64_t x_col, int64_t n)
{
    int64_t c = 0;

    for (; c + FN(WIDTH) <= n; c += FN(WIDTH)) {
        wide64 v[FN(EACH)];

        OT_SIMD_UNROLL
        for (int i = 0; i < FN(EACH); i++)
            v[i] = load_lanes((const char *)(x + (c + i) * x_col),
                              x_col * (int64_t)sizeof(T) * FN(EACH));
        TURN(v);
        OT_SIMD_UNROLL
        for (int i = 0; i < FN(EACH); i++)
            *(wide64 *)(void *)(y + i * y_row + c) = v[i];
    }
    for (; c < n; c++)
        for (int i = 0; i < FN(EACH); i++)
            y[i * y_row + c] = x[c * x_col + i];
}

// y (LINE, y_row apart; LINE) = x (LINE, x_col apart; LINE) transposed. What is read of x's lines
// is read at once, or goes through a buffer, because columns that are a power of two apart push
// each other out of the cache.
static void FN(transpose_block)(FN(element) * y, int64_t y_row, const FN(element) * x,
                                int64_t x_col)
{
#ifdef TURN_SQUARE
    for (int64_t c = 0; c < FN(LINE); c += FN(WIDTH))
        for (int64_t r = 0; r < FN(LINE); r += FN(WIDTH)) {
            wide64 v[FN(WIDTH)];

            OT_SIMD_UNROLL
            for (int i = 0; i < FN(WIDTH); i++)
                v[i] = *(const wide64 *)(const void *)(x + (c + i) * x_col + r);
            TURN_SQUARE(v);
            OT_SIMD_UNROLL
            for (int i = 0; i < FN(WIDTH); i++)
                *(wide64 *)(void *)(y + (r + i) * y_row + c) = v[i];
        }
#else
    T block[FN(LINE) * FN(LINE)];

    for (int64_t c = 0; c < FN(LINE); c++)
        memcpy(&block[c * FN(LINE)], x + c * x_col, LINE_BYTES);
    for (int64_t k = 0; k < FN(LINE); k += FN(EACH))
        FN(transpose_band)(y + k * y_row, y_row, block + k, FN(LINE), FN(LINE));
#endif
}

// y_col = 1 and x_row = 1. Blocks are cache lines of both.
static void FN(transpose)(const ot__move *p)
{
    const int64_t y_row = p->y_row, x_col = p->x_col, rows = p->rows / FN(EACH) * FN(EACH);

    for (int64_t from = 0; from < p->cols; from += FN(LINE)) {
        const int64_t n = OT_MIN(FN(LINE), p->cols - from);
        FN(element) *y = (FN(element) *)p->y + from;
        const FN(element) *x = (const FN(element) *)p->x + from * x_col;
        int64_t r = 0;

        for (; n == FN(LINE) && r + FN(LINE) <= rows; r += FN(LINE))
            FN(transpose_block)(y + r * y_row, y_row, x + r, x_col);
        for (; r < rows; r += FN(EACH))
            FN(transpose_band)(y + r * y_row, y_row, x + r, x_col, n);
    }
    FN(transpose_rest)(p, rows);
}
#else
static void FN(transpose)(const ot__move *p)
{
    FN(transpose_rest)(p, 0);
}
#endif
