// SPDX-License-Identifier: Apache-2.0
// Two-dimensional pieces of strided copies (strided.c), compiled once per instruction set (OT_ISA).
// Addresses need no alignment: an element may be several of the tensor's.
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd.h"

// ---- rows that are contiguous in both ----

// Strides are bytes. A row's end is copied by one that overlaps what came before, so `width` is at
// most n_bytes.
OT_SIMD_INLINE void copy_short_rows(const ot__move *p, size_t width)
{
    const size_t n = (size_t)p->cols;

    for (int64_t r = 0; r < p->rows; r++) {
        char *y = (char *)p->y + r * p->y_row;
        const char *x = (const char *)p->x + r * p->x_row;

        for (size_t i = 0; i + width <= n; i += width)
            memcpy(y + i, x + i, width);
        if (n % width != 0)
            memcpy(y + (n - width), x + (n - width), width);
    }
}

static void copy_long_rows(const ot__move *p)
{
    for (int64_t r = 0; r < p->rows; r++)
        memcpy((char *)p->y + r * p->y_row, (const char *)p->x + r * p->x_row, (size_t)p->cols);
}

static void copy_whole_rows(const ot__move *p)
{
    enum { LONG = 1024 };

    if (p->cols >= LONG)
        copy_long_rows(p);
    else if (p->cols >= 4 * OT_VECTOR_LANES)
        copy_short_rows(p, 4 * OT_VECTOR_LANES);
    else if (p->cols >= 16)
        copy_short_rows(p, 16);
    else if (p->cols >= 8)
        copy_short_rows(p, 8);
    else if (p->cols >= 4)
        copy_short_rows(p, 4);
    else
        copy_short_rows(p, 1);
}

// ---- transposing in registers ----

// A vector consists of lanes of 16 bytes, and interleaving two of them happens lane by lane, which
// takes one instruction. So lane j of v[i] is loaded from column j * (columns of a lane) + i: then
// what a lane holds of `columns of a lane` vectors is transposed, and each result is a part of one
// row of y.
#define LANE_BYTES 16
#define LINE_BYTES 64
#define N_LANES (OT_VECTOR_LANES / 4)
typedef uint8_t lane8 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t wide64 __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(1), may_alias));
typedef uint32_t wide32 __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(1), may_alias));
typedef uint16_t wide16 __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(1), may_alias));

#if N_LANES == 4
#define EACH_LANE(M, per) M(0, 4 * per), M(per, 4 * per), M(2 * per, 4 * per), M(3 * per, 4 * per)
#elif N_LANES == 2
#define EACH_LANE(M, per) M(0, 2 * per), M(per, 2 * per)
#else
#define EACH_LANE(M, per) M(0, per)
#endif
#define LOW_64(at, n) (at), (n) + (at)
#define HIGH_64(at, n) (at) + 1, (n) + (at) + 1
#define LOW_32(at, n) LOW_64(at, n), LOW_64((at) + 1, n)
#define HIGH_32(at, n) LOW_64((at) + 2, n), LOW_64((at) + 3, n)
#define LOW_16(at, n) LOW_32(at, n), LOW_32((at) + 2, n)
#define HIGH_16(at, n) LOW_32((at) + 4, n), LOW_32((at) + 6, n)
#define INTERLEAVE(name, type, M, per)                                                             \
    OT_SIMD_INLINE wide64 name(wide64 a, wide64 b)                                                 \
    {                                                                                              \
        return (wide64)__builtin_shufflevector((type)a, (type)b, EACH_LANE(M, per));               \
    }
INTERLEAVE(low_64, wide64, LOW_64, 2)
INTERLEAVE(high_64, wide64, HIGH_64, 2)
INTERLEAVE(low_32, wide32, LOW_32, 4)
INTERLEAVE(high_32, wide32, HIGH_32, 4)
INTERLEAVE(low_16, wide16, LOW_16, 8)
INTERLEAVE(high_16, wide16, HIGH_16, 8)

// Lanes from addresses that are `step` bytes apart.
OT_SIMD_INLINE wide64 load_lanes(const char *x, int64_t step)
{
    typedef uint64_t lane64 __attribute__((vector_size(16), aligned(1), may_alias));
    const lane64 a = *(const lane64 *)(const void *)x;
#if N_LANES == 1
    (void)step;
    return (wide64)a;
#else
    typedef uint64_t pair64 __attribute__((vector_size(32), aligned(1), may_alias));
    const lane64 b = *(const lane64 *)(const void *)(x + step);
    const pair64 ab = __builtin_shufflevector(a, b, 0, 1, 2, 3);
#if N_LANES == 2
    return (wide64)ab;
#else
    const lane64 c = *(const lane64 *)(const void *)(x + 2 * step);
    const lane64 d = *(const lane64 *)(const void *)(x + 3 * step);
    const pair64 cd = __builtin_shufflevector(c, d, 0, 1, 2, 3);

    return (wide64)__builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
#endif
}

// v[k] becomes what the lanes hold at place k of v[0], v[1] and so on, for 2, 4 or 8 of them.
OT_SIMD_INLINE void turn_2(wide64 *v)
{
    const wide64 low = low_64(v[0], v[1]);

    v[1] = high_64(v[0], v[1]);
    v[0] = low;
}

OT_SIMD_INLINE void turn_4(wide64 *v)
{
    const wide64 a = low_32(v[0], v[1]), b = high_32(v[0], v[1]);
    const wide64 c = low_32(v[2], v[3]), d = high_32(v[2], v[3]);

    v[0] = low_64(a, c);
    v[1] = high_64(a, c);
    v[2] = low_64(b, d);
    v[3] = high_64(b, d);
}

OT_SIMD_INLINE void turn_8(wide64 *v)
{
    wide64 low[4], high[4];

    OT_SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        low[i] = low_16(v[2 * i], v[2 * i + 1]);
        high[i] = high_16(v[2 * i], v[2 * i + 1]);
    }
    turn_4(low);
    turn_4(high);
    OT_SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = low[i];
        v[i + 4] = high[i];
    }
}

// Lane j of v[4 * k] changes places with lane k of v[4 * j].
#if N_LANES == 4
#define PAIRS(first) first, (first) + 1, (first) + 4, (first) + 5
OT_SIMD_INLINE wide64 even_lanes(wide64 a, wide64 b)
{
    return __builtin_shufflevector(a, b, PAIRS(0), PAIRS(8));
}

OT_SIMD_INLINE wide64 odd_lanes(wide64 a, wide64 b)
{
    return __builtin_shufflevector(a, b, PAIRS(2), PAIRS(10));
}

OT_SIMD_INLINE void turn_lanes(wide64 *v)
{
    const wide64 a = even_lanes(v[0], v[4]), b = even_lanes(v[8], v[12]);
    const wide64 c = odd_lanes(v[0], v[4]), d = odd_lanes(v[8], v[12]);

    v[0] = even_lanes(a, b);
    v[4] = even_lanes(c, d);
    v[8] = odd_lanes(a, b);
    v[12] = odd_lanes(c, d);
}
#elif N_LANES == 2
OT_SIMD_INLINE void turn_lanes(wide64 *v)
{
    const wide64 a = v[0], b = v[4];

    v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    v[4] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
}
#endif

// As many vectors as a row has columns of 4 bytes.
#if N_LANES > 1
OT_SIMD_INLINE void turn_square(wide64 *v)
{
    OT_SIMD_UNROLL
    for (int i = 0; i < N_LANES; i++)
        turn_4(v + 4 * i);
    OT_SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        turn_lanes(v + i);
}
#endif

#define T uint8_t
#define SUFFIX 1
#define TEMPLATE "kernels/move/simd_moves.tmpl.h"
#include "kernels/by_one.tmpl.h"
#define T uint16_t
#define SUFFIX 2
#define TURN turn_8
#include "kernels/by_one.tmpl.h"
#undef TURN
#define T uint32_t
#define SUFFIX 4
#define TURN turn_4
#if N_LANES > 1
#define TURN_SQUARE turn_square
#endif
#include "kernels/by_one.tmpl.h"
#undef TURN
#undef TURN_SQUARE
#define T uint64_t
#define SUFFIX 8
#define TURN turn_2
#include "kernels/by_one.tmpl.h"
#undef TURN
#define T lane8
#define SUFFIX 16
#include "kernels/by_one.tmpl.h"

#define BY_SIZE(name)                                                                              \
    {                                                                                              \
        name##_1, name##_2, name##_4, name##_8, name##_16                                          \
    }
const ot__moves OT_ISA_NAME(ot__moves) = {
    .copy_rows = copy_whole_rows,
    .fill_rows = BY_SIZE(fill_rows),
    .transpose = BY_SIZE(transpose),
    .steps = BY_SIZE(steps),
};
