// SPDX-License-Identifier: Apache-2.0
// Part of simd_gemm.c: the tile of y whose sums stay in registers.
#ifndef OT_KERNELS_SIMD_GEMM_TILE_H
#define OT_KERNELS_SIMD_GEMM_TILE_H

#include <string.h>

#include "kernels/simd.h"

// Where a tile's results go: y[row * y_row + vector] or, at the borders and when y is transposed,
// into `buffer` of MOST_ROWS rows. Those of the next tile go `next` floats further. `fetches`:
// their lines, and of the rows of `a` below those by which the processor sees what comes next.
typedef struct target {
    float *y;
    int64_t y_row, next;
    float alpha;
    bool accumulates, fetches;
} target;

// What a tile fetches into the second cache for others. With each element of k a line, or two,
// `more` floats apart: at `at`, from `k` floats further each time, and from `jump` further after
// the `first` steps and after each `steps` from then on. The next tile begins `next` floats
// further.
typedef struct walk {
    const float *at; // NULL: nothing is fetched
    int64_t k, first, steps, jump, more, next;
} walk;

// The panel of b that comes next, which tiles copy while they multiply: after `every` elements of
// k, the next time after `wait`, a row of `width` floats, from `row` floats further each time. It
// is fetched `ahead` floats before.
typedef struct next_panel {
    const float *from;
    float *to;
    int64_t row, width, ahead, every, wait; // every: 0: nothing is copied
} next_panel;

// The operands of a tile: `a` has a_row floats between rows and a_k between columns, `b` b_k
// between rows; those of the next tile are a_next and b_next floats further. Where they are copied,
// the rows of b are left in `copy`, one after the other, and those of the next panel, which begins
// panel_ahead floats further, are fetched. Where there is time, the rows of `a` below the tile's
// are fetched from their element `ahead` on, and from ahead_next further by the next tile. `walk`:
// what is fetched besides, `next`: what is copied besides. Where columns of `a` are copied they
// are left in a_copy, TILE_ROWS floats of each.
typedef struct operands {
    const float *a, *b;
    float *copy, *a_copy;
    int64_t ahead, ahead_next, a_row, a_k, a_next, b_k, b_next, depth, panel_ahead;
    walk walk;
    next_panel next;
} operands;

// Where a tile finds its panel of b: in the first cache, or where the processor finds what comes
// next; anywhere, and so short that there is no time to fetch much; in the second, or where it
// lies; the same, while there is a walk; where it lies, from where it is copied, too; or as the
// first, while columns of `a`, the next panel or both are copied.
typedef enum panel_kind {
    NEAR,
    SHORT,
    FAR,
    FETCHING,
    COPIED,
    COPYING_A,
    COPYING_NEXT,
    N_PANEL_KINDS
} panel_kind;

enum { SHORT_DEPTH = 4 * MAX_ROWS };

// Rows of `a` whose addresses are sums of one pointer and a multiple of a_row; those of the others
// of a second pointer: registers cannot hold more multiples.
enum { NEAR_ROWS = OT_ISA_LEVEL == 2 ? MAX_ROWS / 2 : MOST_ROWS };

// Elements of k from one row of y that a tile fetches to the next: a power of two, few enough for
// all rows of most tiles. 0: all rows at once, which the processor takes where they are few lines.
OT_SIMD_INLINE int64_t fetch_step(int64_t depth, int rows, int vectors)
{
    if (rows * ((vectors * LANES + CACHE_LINE - 1) / CACHE_LINE) <= LINES_AT_ONCE)
        return 0;
    return depth >= 2 * SHORT_DEPTH ? 4 : depth >= SHORT_DEPTH ? 2 : depth >= rows ? 1 : 0;
}

// All lines of a row of y, which may begin anywhere in one.
OT_SIMD_INLINE void fetch_y_row(const float *y, int vectors)
{
    OT_SIMD_UNROLL
    for (int j = 0; j < vectors * LANES; j += CACHE_LINE)
        __builtin_prefetch(y + j, 1);
    __builtin_prefetch(y + vectors * LANES - 1, 1);
}

// The two lines of a row of `a` by which the processor sees what comes next.
OT_SIMD_INLINE void fetch_below(const float *a)
{
    __builtin_prefetch(a);
    __builtin_prefetch(a + CACHE_LINE);
}

// A tile on its way along k.
typedef struct tile_state {
    ot__vector sum[MOST_ROWS][TILE_VECTORS];
    const float *a, *far, *b, *walk, *next;
    int64_t steps, wait;
    float *copy, *a_copy, *next_copy;
} tile_state;

OT_SIMD_INLINE void copy_next_row(tile_state *s, const next_panel *n)
{
    const float *ahead = s->next + n->ahead;

    for (int64_t j = 0; j < n->width; j += LANES) {
        if (LANES == CACHE_LINE || j % CACHE_LINE == 0)
            __builtin_prefetch(ahead + j, 0, OT_INTO_SECOND_CACHE);
        ot__vector_store(s->next_copy + j, ot__vector_load(s->next + j));
    }
    __builtin_prefetch(ahead + n->width - 1, 0, OT_INTO_SECOND_CACHE);
    s->next += n->row;
    s->next_copy += n->width;
    s->wait = n->every;
}

// One element of k.
OT_SIMD_INLINE void tile_step(tile_state *s, const operands *o, int rows, int vectors,
                              panel_kind kind)
{
    const int64_t a_row = kind == COPYING_A ? 1 : o->a_row;
    ot__vector column[TILE_VECTORS];

    OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
        column[v] = ot__vector_load(s->b + v * LANES);
        if (kind == COPIED)
            ot__vector_store(s->copy + v * LANES, column[v]);
    }
    if (kind == COPIED || ((kind == FAR || kind == FETCHING) && FETCHES_PANELS))
        OT_SIMD_UNROLL
    for (int j = 0; j < vectors * LANES; j += CACHE_LINE)
        __builtin_prefetch(s->b + ROWS_AHEAD * o->b_k + j);
    if (kind == COPIED) {
        OT_SIMD_UNROLL
        for (int j = 0; j < vectors * LANES; j += CACHE_LINE)
            __builtin_prefetch(s->b + o->panel_ahead + j, 0, OT_INTO_SECOND_CACHE);
        __builtin_prefetch(s->b + o->panel_ahead + vectors * LANES - 1, 0, OT_INTO_SECOND_CACHE);
    }
    if (kind == FETCHING) {
        __builtin_prefetch(s->walk, 0, OT_INTO_SECOND_CACHE);
        __builtin_prefetch(s->walk + o->walk.more, 0, OT_INTO_SECOND_CACHE);
        s->walk += o->walk.k;
        if (--s->steps == 0) {
            s->walk += o->walk.jump;
            s->steps = o->walk.steps;
        }
    }
    if (kind == COPYING_A) {
        memcpy(s->a_copy, s->a, TILE_ROWS * sizeof(float));
        __builtin_prefetch(s->a + CACHE_LINE, 0, OT_INTO_SECOND_CACHE);
        s->a_copy += TILE_ROWS;
    }
    if ((kind == COPYING_A || kind == COPYING_NEXT) && --s->wait == 0)
        copy_next_row(s, &o->next);
    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++)
        s->sum[i][v] +=
            (i < NEAR_ROWS ? s->a[i * a_row] : s->far[(i - NEAR_ROWS) * a_row]) * column[v];
    s->a += o->a_k;
    s->far += o->a_k;
    s->b += o->b_k;
    s->copy += vectors * LANES;
}

// (rows, depth) * (depth, vectors). All arguments but the structs are constants where it is called.
OT_SIMD_INLINE void tile(const target *t, operands *o, int rows, int vectors, panel_kind kind)
{
    const int64_t step = t->fetches ? fetch_step(o->depth, rows, vectors) : 0;
    const int64_t last = OT_MIN(o->depth, rows * step);
    const operands in = *o;
    tile_state s = {.a = in.a,
                    .far = in.a + NEAR_ROWS * (kind == COPYING_A ? 1 : in.a_row),
                    .b = in.b,
                    .walk = in.walk.at,
                    .steps = in.walk.first,
                    .copy = in.copy,
                    .a_copy = in.a_copy,
                    .next = in.next.from,
                    .next_copy = in.next.to,
                    .wait = in.next.wait};
    const float *fetched = t->y, *below = in.a + rows * in.a_row + in.ahead;

    OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++)
        OT_SIMD_UNROLL
    for (int v = 0; v < vectors; v++)
        s.sum[i][v] = (ot__vector){0};
    if (step == 0 && t->fetches && kind != SHORT)
        OT_SIMD_UNROLL
    for (int i = 0; i < rows; i++) {
        fetch_y_row(fetched + i * t->y_row, vectors);
        fetch_below(below + i * in.a_row);
    }
    for (int64_t k = 0; k < last; k++) {
        if ((k & (step - 1)) == 0) {
            fetch_y_row(fetched, vectors);
            fetched += t->y_row;
            if (kind != SHORT) {
                fetch_below(below);
                below += in.a_row;
            }
        }
        tile_step(&s, &in, rows, vectors, kind);
    }
    for (int64_t k = in.depth - last; k > 0; k--)
        tile_step(&s, &in, rows, vectors, kind);

    if (kind == COPYING_A || kind == COPYING_NEXT) {
        o->next.from = s.next;
        o->next.to = s.next_copy;
        o->next.wait = s.wait;
    }

    const float alpha = t->alpha;
    const bool accumulates = t->accumulates;
    const int64_t y_row = t->y_row;
    float *y = t->y;

    if (alpha != 1) {
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            s.sum[i][v] *= alpha;
    }
    if (accumulates) {
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++, y += y_row)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            ot__vector_store(y + v * LANES, s.sum[i][v] + ot__vector_load(y + v * LANES));
    } else {
        OT_SIMD_UNROLL
        for (int i = 0; i < rows; i++, y += y_row)
            OT_SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            ot__vector_store(y + v * LANES, s.sum[i][v]);
    }
}

// What tiles are told goes along with them: a copy of it, in wide registers, would wait for all
// that is still to be stored.
OT_SIMD_INLINE void tiles(target *t, operands *o, int64_t n, int rows, int vectors, panel_kind kind)
{
    for (; n > 0; n--) {
        tile(t, o, rows, vectors, kind);
        t->y += t->next;
        o->a += o->a_next;
        o->b += o->b_next;
        o->ahead += o->ahead_next;
        if (kind == FETCHING)
            o->walk.at += o->walk.next;
        o->copy += vectors * LANES * o->depth;
        if (kind == COPYING_A)
            o->a_copy += TILE_ROWS * o->depth;
    }
}

// The tiles of so many rows and vectors, which the compiler must know to keep the sums in
// registers: a function each, because it runs out of them in one that has all.
typedef void tile_function(target *t, operands *o, int64_t n);

#define TILE_OF(name, kind, rows, vectors)                                                         \
    static void name##_##rows##_##vectors(target *t, operands *o, int64_t n)                       \
    {                                                                                              \
        tiles(t, o, n, rows, vectors, kind);                                                       \
    }
#if OT_ISA_LEVEL == 2
#define TILES_COPYING(rows, v)                                                                     \
    TILE_OF(copying_a, COPYING_A, rows, v) TILE_OF(copying_next, COPYING_NEXT, rows, v)
#define NAMES_COPYING(rows, v) copying_a_##rows##_##v, copying_next_##rows##_##v
#elif OT_ISA_LEVEL == 1
#define TILES_COPYING(rows, v) TILE_OF(copying_next, COPYING_NEXT, rows, v)
#define NAMES_COPYING(rows, v) NULL, copying_next_##rows##_##v
#else
#define TILES_COPYING(rows, v)
#define NAMES_COPYING(rows, v) NULL, NULL
#endif
#define TILE(rows, v)                                                                              \
    TILE_OF(near, NEAR, rows, v)                                                                   \
    TILE_OF(short, SHORT, rows, v)                                                                 \
    TILE_OF(far, FAR, rows, v)                                                                     \
    TILE_OF(fetching, FETCHING, rows, v)                                                           \
    TILE_OF(copied, COPIED, rows, v)                                                               \
    TILES_COPYING(rows, v)
#define TILES_4(v) TILE(1, v) TILE(2, v) TILE(3, v) TILE(4, v)
#define TILES_6(v) TILES_4(v) TILE(5, v) TILE(6, v)
#define TILES_8(v) TILES_6(v) TILE(7, v) TILE(8, v)
#define TILES_12(v) TILES_8(v) TILE(9, v) TILE(10, v) TILE(11, v) TILE(12, v)

#define KINDS(rows, v)                                                                             \
    {                                                                                              \
        near_##rows##_##v, short_##rows##_##v, far_##rows##_##v, fetching_##rows##_##v,            \
            copied_##rows##_##v, NAMES_COPYING(rows, v)                                            \
    }
#define NAMES_4(v) KINDS(1, v), KINDS(2, v), KINDS(3, v), KINDS(4, v)
#define NAMES_6(v) NAMES_4(v), KINDS(5, v), KINDS(6, v)
#define NAMES_8(v) NAMES_6(v), KINDS(7, v), KINDS(8, v)
#define NAMES_12(v) NAMES_8(v), KINDS(9, v), KINDS(10, v), KINDS(11, v), KINDS(12, v)

#define TILES_TO(rows, v) TILES_TO_(rows, v)
#define TILES_TO_(rows, v) TILES_##rows(v)
#define NAMES_TO(rows, v) NAMES_TO_(rows, v)
#define NAMES_TO_(rows, v) NAMES_##rows(v)

TILES_TO(ROWS_OF_ONE, 1)
TILES_TO(MAX_ROWS, 2)
#if MAX_VECTORS > 2
TILES_TO(MAX_ROWS, 3)
#endif
#if MAX_VECTORS > 3
TILES_TO(ROWS_OF_WIDEST, 4)
#endif

static tile_function *const tile_functions[TILE_VECTORS][MOST_ROWS][N_PANEL_KINDS] = {
    {NAMES_TO(ROWS_OF_ONE, 1)},
    {NAMES_TO(MAX_ROWS, 2)},
#if MAX_VECTORS > 2
    {NAMES_TO(MAX_ROWS, 3)},
#endif
#if MAX_VECTORS > 3
    {NAMES_TO(ROWS_OF_WIDEST, 4)},
#endif
};

static void multiply(int64_t rows, int64_t vectors, int64_t n, target *t, operands *o,
                     panel_kind kind)
{
    tile_functions[vectors - 1][rows - 1][kind](t, o, n);
}

#endif
