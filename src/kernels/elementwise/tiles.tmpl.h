// SPDX-License-Identifier: Apache-2.0
// The tiles of one floating-point type T. The including file defines FN(name), the mathematics that
// formulas name (EXP, LOG, ...), DECAY (e^-x of x >= 0), LOG1P and POW, where those of the C
// library take over (CIRCLE_TAKES, POW_LIBRARY, ...), LINKAGE of the tiles, and SIMD_LOOP to stand
// before their loops. Loops are free of branches so that they become vector code.

#define C(number) ((T)(number))
#define SIGMOID FN(sigmoid_of)
#define SOFTPLUS FN(softplus_of)
#define SIGN FN(sign_of)
#define MAX FN(max_of)
#define MIN FN(min_of)
#define TO_DIVISOR FN(to_divisor_of)

INLINE T FN(sigmoid_of)(T x)
{
    const T e = DECAY(ABS(x)); // never overflows

    return (x >= 0 ? 1 : e) / (1 + e);
}

INLINE T FN(softplus_of)(T x)
{
    return (x < 0 ? 0 : x) + LOG1P(DECAY(ABS(x)));
}

INLINE T FN(sign_of)(T x)
{
    const T one = x > 0 ? (T)1 : (T)-1;

    return x == 0 || x != x ? x : one;
}

// NaN wins, as in NumPy.
INLINE T FN(max_of)(T a, T b)
{
    return a > b || a != a ? a : b;
}

INLINE T FN(min_of)(T a, T b)
{
    return a < b || a != a ? a : b;
}

// The remainder r of a division by b, |r| < |b|, with the sign of b.
INLINE T FN(to_divisor_of)(T r, T b)
{
    const T other = r + b;

    return r == 0 ? (b < 0 ? -(T)0 : (T)0) : (r < 0) != (b < 0) ? other : r;
}

// ---- rows: a loop each ----

enum { BLOCK = 256 };

#define UNPACKED(...) __VA_ARGS__
#define ATTR(attr, value)                                                                          \
    const T attr = (T)*attrs++;                                                                    \
    (void)attr;
#define GIVEN(name, formula)                                                                       \
    const T name = formula;                                                                        \
    (void)name;

// tile_y[k] = formula of what `operands` and `given` declare; loaded in any case, so that there is
// nothing to branch for.
#define LOOP(operands, given, formula)                                                             \
    SIMD_LOOP                                                                                      \
    for (int64_t k = 0; k < n; k++) {                                                              \
        operands given tile_y[k] = formula;                                                        \
    }
#define TILE(symbol, attributes, operands, given, formula)                                         \
    LINKAGE void FN(symbol)(T * tile_y, const T *const *tile_x, int64_t n, const float *attrs)     \
    {                                                                                              \
        const T *x0 = tile_x[0], *x1 = tile_x[1];                                                  \
                                                                                                   \
        UNPACKED attributes(void) attrs;                                                           \
        (void)x1;                                                                                  \
        LOOP(operands, given, formula)                                                             \
    }
// The last operand may be absent.
#define TILE_BIASED(symbol, bias, operands, biased, given, formula)                                \
    LINKAGE void FN(symbol)(T * tile_y, const T *const *tile_x, int64_t n, const float *attrs)     \
    {                                                                                              \
        const T *x0 = tile_x[0], *x1 = tile_x[1], *bias_x = tile_x[bias];                          \
                                                                                                   \
        (void)attrs;                                                                               \
        (void)x1;                                                                                  \
        if (bias_x == NULL) {                                                                      \
            LOOP(operands, given, formula)                                                         \
        } else {                                                                                   \
            LOOP(biased, given, formula)                                                           \
        }                                                                                          \
    }

// Elements that are not within what `formula` takes are `beyond`. tile_y may be any operand, so a
// block of results is complete before any of it is stored.
#define BOUNDED_LOOP(operands, is_within, formula, beyond)                                         \
    for (int64_t start = 0; start < n; start += BLOCK) {                                           \
        const int64_t m = n - start < BLOCK ? n - start : BLOCK;                                   \
        T block[BLOCK];                                                                            \
        int n_beyond = 0;                                                                          \
                                                                                                   \
        SIMD_LOOP                                                                                  \
        for (int64_t i = 0; i < m; i++) {                                                          \
            const int64_t k = start + i;                                                           \
            operands block[i] = formula;                                                           \
            n_beyond += !(is_within);                                                              \
        }                                                                                          \
        for (int64_t i = 0; n_beyond > 0 && i < m; i++) {                                          \
            const int64_t k = start + i;                                                           \
            operands if (!(is_within)) block[i] = beyond;                                          \
        }                                                                                          \
        memcpy(tile_y + start, block, (size_t)m * sizeof(T));                                      \
    }
#define TILE_BOUNDED(symbol, operands, is_within, formula, beyond)                                 \
    LINKAGE void FN(symbol)(T * tile_y, const T *const *tile_x, int64_t n, const float *attrs)     \
    {                                                                                              \
        const T *x0 = tile_x[0], *x1 = tile_x[1];                                                  \
                                                                                                   \
        (void)attrs;                                                                               \
        (void)x1;                                                                                  \
        BOUNDED_LOOP(operands, is_within, formula, beyond)                                         \
    }

#define TILE_1(symbol, attributes, given, formula)                                                 \
    TILE(symbol, attributes, const T x = x0[k];, given, formula)
#define VECTOR_1 TILE_1
#define ROUNDED_ONCE_1 TILE_1
#define CIRCLE_1(symbol, attributes, given, formula)                                               \
    TILE_BOUNDED(symbol, const T x = x0[k];, CIRCLE_TAKES(x), formula, (T)symbol((double)x))
#define OT_FUNCTION(domain, name, symbol, since, age, types, code, attributes, given, y, rule,     \
                    gradient)                                                                      \
    code##_1(symbol, attributes, given, y)
#define OT_GRADIENT(domain, name, symbol, code, attributes, given, from, dx)                       \
    TILE(symbol, attributes, const T dy = x0[k]; const T from = x1[k];, given, dx)
#define OT_BIASED(name, symbol, given, y, dx)                                                      \
    TILE_BIASED(symbol, 1, const T x = x0[k];, const T x = x0[k] + bias_x[k];, given, y)           \
    TILE_BIASED(symbol##_grad, 2, const T dy = x0[k]; const T x = x1[k];, const T dy = x0[k];      \
                const T x = x1[k] + bias_x[k];, given, dx)
// A loop for each part, block by block: several rounds of a short loop are under way at once. Both
// results may be x.
#define PART_LOOP(name, formula)                                                                   \
    SIMD_LOOP                                                                                      \
    for (int64_t k = 0; k < m; k++) {                                                              \
        const T x = at[k];                                                                         \
                                                                                                   \
        name##_at[k] = formula;                                                                    \
    }
#define PART_ROOM(name, formula) T name##_at[BLOCK];
#define PART_LOAD(name, formula) const T name = name##_at[k];
#define OT_SLOPE(symbol, attributes, parts, given, formula, dx)                                    \
    LINKAGE void FN(symbol##_slope)(T * tile_y, T * slope, const T *x0, int64_t n,                 \
                                    const float *attrs)                                            \
    {                                                                                              \
        UNPACKED attributes(void) attrs;                                                           \
        for (int64_t start = 0; start < n; start += BLOCK) {                                       \
            const int64_t m = n - start < BLOCK ? n - start : BLOCK;                               \
            const T *at = x0 + start;                                                              \
            parts(PART_ROOM);                                                                      \
                                                                                                   \
            parts(PART_LOOP);                                                                      \
            SIMD_LOOP                                                                              \
            for (int64_t k = 0; k < m; k++) {                                                      \
                const T x = at[k], dy = 1;                                                         \
                parts(PART_LOAD);                                                                  \
                given const T y = formula;                                                         \
                                                                                                   \
                slope[start + k] = dx;                                                             \
                tile_y[start + k] = y;                                                             \
            }                                                                                      \
        }                                                                                          \
    }
#include "unary.def"

// y may be any operand: of more than two, only what the last one gives is stored there.
#define TILE_N(symbol, formula)                                                                    \
    INLINE void FN(symbol##_of_two)(T * to, const T *x0, const T *x1, int64_t n)                   \
    {                                                                                              \
        SIMD_LOOP                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const T a = x0[k];                                                                     \
            const T b = x1[k];                                                                     \
                                                                                                   \
            to[k] = formula;                                                                       \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    LINKAGE void FN(symbol)(T * tile_y, const T *const *tile_x, int64_t n, const float *attrs)     \
    {                                                                                              \
        int n_x = 1;                                                                               \
                                                                                                   \
        (void)attrs;                                                                               \
        while (n_x < OT__TILE_INPUTS && tile_x[n_x] != NULL)                                       \
            n_x++;                                                                                 \
        if (n_x == 1)                                                                              \
            memmove(tile_y, tile_x[0], (size_t)n * sizeof(T));                                     \
        if (n_x == 2)                                                                              \
            FN(symbol##_of_two)(tile_y, tile_x[0], tile_x[1], n);                                  \
        for (int64_t start = 0; start < n && n_x > 2; start += BLOCK) {                            \
            const int64_t m = n - start < BLOCK ? n - start : BLOCK;                               \
            T block[BLOCK];                                                                        \
                                                                                                   \
            FN(symbol##_of_two)(block, tile_x[0] + start, tile_x[1] + start, m);                   \
            for (int i = 2; i + 1 < n_x; i++)                                                      \
                FN(symbol##_of_two)(block, block, tile_x[i] + start, m);                           \
            FN(symbol##_of_two)(tile_y + start, block, tile_x[n_x - 1] + start, m);                \
        }                                                                                          \
    }
#define OT_BINARY_TILE(symbol, c) TILE(symbol, (), const T a = x0[k]; const T b = x1[k];, , c)
#define OT_BOUNDED_TILE(symbol, is_within, c, beyond)                                              \
    TILE_BOUNDED(symbol, const T a = x0[k]; const T b = x1[k];, is_within, c, beyond)
#define OT_BINARY(name, symbol, since, age, types, code, infer, c, da, db) OT_BINARY_TILE(symbol, c)
#define OT_VARIADIC(name, symbol, types, code, v, rule) TILE_N(symbol, v)
#include "binary.def"

// ---- by hand ----

// Where the bounds cross, the upper one holds, as ONNX says.
INLINE T FN(clip_of)(T v, T low, T high)
{
    const T at_least = v < low ? low : v;

    return at_least > high ? high : at_least;
}

LINKAGE void FN(clip)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *low = x[1], *high = x[2];

    (void)attrs;
    if (low != NULL && high != NULL) {
        SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = FN(clip_of)(a[k], low[k], high[k]);
    } else if (low != NULL) {
        SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = a[k] < low[k] ? low[k] : a[k];
    } else if (high != NULL) {
        SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = a[k] > high[k] ? high[k] : a[k];
    } else if (y != a) {
        memcpy(y, a, (size_t)n * sizeof(*y));
    }
}

LINKAGE void FN(pow)(T *tile_y, const T *const *tile_x, int64_t n, const float *attrs)
{
    const T *x0 = tile_x[0], *x1 = tile_x[1];
    int n_others = 0;

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        n_others += x1[k] != 2;
    if (n_others == 0) { // by far the most frequent exponent
        SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            tile_y[k] = x0[k] * x0[k];
        return;
    }
    BOUNDED_LOOP(const T a = x0[k]; const T b = x1[k];
                 , POW_TAKES(a, b), POW(a, b), POW_LIBRARY(a, b))
}
