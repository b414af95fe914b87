// SPDX-License-Identifier: Apache-2.0
// The tiles of one signed integer type T, with U its unsigned twin: arithmetic wraps around.

static inline T FN(remainder)(T a, T b)
{
    return b == -1 ? 0 : a % b; // the smallest number % -1 traps
}

static inline T FN(floor_remainder)(T a, T b)
{
    const T r = FN(remainder)(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline T FN(power)(T a, T b)
{
    U y = 1, square = (U)a;

    if (b < 0) // 1 / a^|b| towards zero
        return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    for (; b > 0; b /= 2, square *= square)
        if (b % 2 != 0)
            y *= square;
    return (T)y;
}

// y[k] = formula of x, or of a and b.
#define INT_1(symbol, formula)                                                                     \
    void FN(symbol)(T * tile_y, const T *const *tile_x, int64_t n, const float *attrs)             \
    {                                                                                              \
        (void)attrs;                                                                               \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const T x = tile_x[0][k];                                                              \
                                                                                                   \
            tile_y[k] = formula;                                                                   \
        }                                                                                          \
    }
#define INT_2(symbol, formula)                                                                     \
    void FN(symbol)(T * tile_y, const T *const *tile_x, int64_t n, const float *attrs)             \
    {                                                                                              \
        (void)attrs;                                                                               \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const T a = tile_x[0][k], b = tile_x[1][k];                                            \
                                                                                                   \
            tile_y[k] = formula;                                                                   \
        }                                                                                          \
    }
// The same of any number of operands: a is what there is so far.
#define INT_N(symbol, formula)                                                                     \
    void FN(symbol)(T * tile_y, const T *const *tile_x, int64_t n, const float *attrs)             \
    {                                                                                              \
        (void)attrs;                                                                               \
        for (int64_t k = 0; k < n; k++) {                                                          \
            T a = tile_x[0][k];                                                                    \
                                                                                                   \
            for (int i = 1; i < OT__TILE_INPUTS && tile_x[i] != NULL; i++) {                       \
                const T b = tile_x[i][k];                                                          \
                                                                                                   \
                a = formula;                                                                       \
            }                                                                                      \
            tile_y[k] = a;                                                                         \
        }                                                                                          \
    }

INT_1(abs, (T)(x < 0 ? 0 - (U)x : (U)x))
INT_1(neg, (T)(0 - (U)x))
INT_1(relu, x < 0 ? 0 : x)
INT_1(sign, (x > 0) - (x < 0))
INT_2(add, (T)((U)a + (U)b))
INT_2(sub, (T)((U)a - (U)b))
INT_2(mul, (T)((U)a *(U)b))
INT_2(div, b == -1 ? (T)(0 - (U)a) : a / b)
INT_2(fmod, FN(remainder)(a, b))
INT_2(mod, FN(floor_remainder)(a, b))
INT_2(prelu, a < 0 ? (T)((U)a * (U)b) : a)
INT_2(pow, FN(power)(a, b))
INT_N(max, a > b ? a : b)
INT_N(min, a < b ? a : b)
INT_N(sum, (T)((U)a + (U)b))

void FN(clip_integers)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *low = x[1], *high = x[2];

    (void)attrs;
    for (int64_t k = 0; k < n; k++) {
        const T v = low != NULL && a[k] < low[k] ? low[k] : a[k];

        y[k] = high != NULL && v > high[k] ? high[k] : v;
    }
}

#undef INT_1
#undef INT_2
#undef INT_N
