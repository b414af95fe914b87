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

void FN(abs)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)(a[k] < 0 ? 0 - (U)a[k] : (U)a[k]);
}

void FN(neg)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)(0 - (U)a[k]);
}

void FN(relu)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] < 0 ? 0 : a[k];
}

void FN(sign)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = (a[k] > 0) - (a[k] < 0);
}

void FN(add)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)((U)a[k] + (U)b[k]);
}

void FN(sub)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)((U)a[k] - (U)b[k]);
}

void FN(mul)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)((U)a[k] * (U)b[k]);
}

void FN(div)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = b[k] == -1 ? (T)(0 - (U)a[k]) : a[k] / b[k];
}

void FN(fmod)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(remainder)(a[k], b[k]);
}

void FN(mod)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(floor_remainder)(a[k], b[k]);
}

void FN(pow)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(power)(a[k], b[k]);
}

void FN(clip)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *low = x[1], *high = x[2];

    (void)attrs;
    for (int64_t k = 0; k < n; k++) {
        const T v = low != NULL && a[k] < low[k] ? low[k] : a[k];

        y[k] = high != NULL && v > high[k] ? high[k] : v;
    }
}

void FN(max)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t k = 0; k < n; k++) {
        T v = x[0][k];

        for (int i = 1; i < OT__TILE_INPUTS && x[i] != NULL; i++)
            v = v > x[i][k] ? v : x[i][k];
        y[k] = v;
    }
}

void FN(min)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t k = 0; k < n; k++) {
        T v = x[0][k];

        for (int i = 1; i < OT__TILE_INPUTS && x[i] != NULL; i++)
            v = v < x[i][k] ? v : x[i][k];
        y[k] = v;
    }
}

void FN(sum)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t k = 0; k < n; k++) {
        T v = x[0][k];

        for (int i = 1; i < OT__TILE_INPUTS && x[i] != NULL; i++)
            v = (T)((U)v + (U)x[i][k]);
        y[k] = v;
    }
}
