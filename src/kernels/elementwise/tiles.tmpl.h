// SPDX-License-Identifier: Apache-2.0
// The tiles of one floating-point type T. The including file defines FN(name) and the mathematics
// EXP, LOG, LOG1P, ERF, TANH, POW, SQRT, FLOOR and ABS, LINKAGE of the tiles, and SIMD_LOOP to
// stand before their loops. Loops are free of branches so that they become vector code.

#define INV_SQRT_2 ((T)0.70710678118654752440)
#define INV_SQRT_2PI ((T)0.39894228040143267794)
#define SQRT_2_BY_PI ((T)0.79788456080286535588)
#define GELU_CUBIC ((T)0.044715)

// ---- functions of one number ----

INLINE T FN(sigmoid_of)(T x)
{
    const T e = EXP(-ABS(x)); // never overflows

    return (x >= 0 ? 1 : e) / (1 + e);
}

INLINE T FN(gelu_of)(T x)
{
    return (T)0.5 * x * (1 + ERF(x * INV_SQRT_2));
}

INLINE T FN(gelu_slope)(T x)
{
    return (T)0.5 * (1 + ERF(x * INV_SQRT_2)) + x * INV_SQRT_2PI * EXP((T)-0.5 * x * x);
}

INLINE T FN(fast_gelu_of)(T x)
{
    return (T)0.5 * x * (1 + TANH(SQRT_2_BY_PI * (x + GELU_CUBIC * x * x * x)));
}

INLINE T FN(fast_gelu_slope)(T x)
{
    const T t = TANH(SQRT_2_BY_PI * (x + GELU_CUBIC * x * x * x));
    const T inner = SQRT_2_BY_PI * (1 + 3 * GELU_CUBIC * x * x);

    return (T)0.5 * (1 + t + x * (1 - t * t) * inner);
}

INLINE T FN(quick_gelu_slope)(T x, T alpha)
{
    const T s = FN(sigmoid_of)(alpha * x);

    return s * (1 + alpha * x * (1 - s));
}

INLINE T FN(softplus_of)(T x)
{
    return (x < 0 ? 0 : x) + LOG1P(EXP(-ABS(x)));
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

// ---- tiles ----

enum { BLOCK = 256 };

LINKAGE void FN(abs)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = ABS(a[k]);
}

LINKAGE void FN(erf)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = ERF(a[k]);
}

LINKAGE void FN(exp)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = EXP(a[k]);
}

LINKAGE void FN(floor)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = FLOOR(a[k]);
}

LINKAGE void FN(gelu)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(gelu_of)(a[k]);
}

LINKAGE void FN(log)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = LOG(a[k]);
}

LINKAGE void FN(neg)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = -a[k];
}

LINKAGE void FN(reciprocal)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = 1 / a[k];
}

LINKAGE void FN(relu)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] < 0 ? 0 : a[k];
}

LINKAGE void FN(sigmoid)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(sigmoid_of)(a[k]);
}

LINKAGE void FN(sign)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(sign_of)(a[k]);
}

LINKAGE void FN(softplus)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(softplus_of)(a[k]);
}

LINKAGE void FN(sqrt)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = SQRT(a[k]);
}

LINKAGE void FN(tanh)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = TANH(a[k]);
}

LINKAGE void FN(add)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] + b[k];
}

LINKAGE void FN(sub)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] - b[k];
}

LINKAGE void FN(mul)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] * b[k];
}

LINKAGE void FN(div)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] / b[k];
}

LINKAGE void FN(bias_gelu)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(gelu_of)(a[k] + b[k]);
}

LINKAGE void FN(gelu_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *at = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = dy[k] * FN(gelu_slope)(at[k]);
}

LINKAGE void FN(fast_gelu_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *at = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = dy[k] * FN(fast_gelu_slope)(at[k]);
}

LINKAGE void FN(relu_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *at = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++) {
        const T g = dy[k]; // loaded in any case, so that there is nothing to branch for

        y[k] = at[k] > 0 ? g : 0;
    }
}

LINKAGE void FN(sigmoid_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *s = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = dy[k] * s[k] * (1 - s[k]);
}

LINKAGE void FN(tanh_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *t = x[1];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = dy[k] * (1 - t[k] * t[k]);
}

LINKAGE void FN(bias_gelu_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *at = x[1], *bias = x[2];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = dy[k] * FN(gelu_slope)(at[k] + bias[k]);
}

LINKAGE void FN(bias_fast_gelu_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *at = x[1], *bias = x[2];

    (void)attrs;
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = dy[k] * FN(fast_gelu_slope)(at[k] + bias[k]);
}

// y may be any operand, so a block of results is complete before any of it is stored.
LINKAGE void FN(max)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t m = n - start < BLOCK ? n - start : BLOCK;
        T block[BLOCK];

        memcpy(block, x[0] + start, (size_t)m * sizeof(T));
        for (int i = 1; i < OT__TILE_INPUTS && x[i] != NULL; i++) {
            const T *a = x[i] + start;

            SIMD_LOOP
            for (int64_t k = 0; k < m; k++)
                block[k] = FN(max_of)(block[k], a[k]);
        }
        memcpy(y + start, block, (size_t)m * sizeof(T));
    }
}

LINKAGE void FN(min)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t m = n - start < BLOCK ? n - start : BLOCK;
        T block[BLOCK];

        memcpy(block, x[0] + start, (size_t)m * sizeof(T));
        for (int i = 1; i < OT__TILE_INPUTS && x[i] != NULL; i++) {
            const T *a = x[i] + start;

            SIMD_LOOP
            for (int64_t k = 0; k < m; k++)
                block[k] = FN(min_of)(block[k], a[k]);
        }
        memcpy(y + start, block, (size_t)m * sizeof(T));
    }
}

LINKAGE void FN(sum)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t m = n - start < BLOCK ? n - start : BLOCK;
        T block[BLOCK];

        memcpy(block, x[0] + start, (size_t)m * sizeof(T));
        for (int i = 1; i < OT__TILE_INPUTS && x[i] != NULL; i++) {
            const T *a = x[i] + start;

            SIMD_LOOP
            for (int64_t k = 0; k < m; k++)
                block[k] = block[k] + a[k];
        }
        memcpy(y + start, block, (size_t)m * sizeof(T));
    }
}

LINKAGE void FN(fast_gelu)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *bias = x[1];

    (void)attrs;
    if (bias == NULL) {
        SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = FN(fast_gelu_of)(a[k]);
        return;
    }
    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = FN(fast_gelu_of)(a[k] + bias[k]);
}

LINKAGE void FN(quick_gelu)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], alpha = (T)attrs[0];

    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] * FN(sigmoid_of)(alpha * a[k]);
}

LINKAGE void FN(quick_gelu_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *at = x[1], alpha = (T)attrs[0];

    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = dy[k] * FN(quick_gelu_slope)(at[k], alpha);
}

LINKAGE void FN(leaky_relu)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], alpha = (T)attrs[0];

    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = a[k] < 0 ? alpha * a[k] : a[k];
}

LINKAGE void FN(leaky_relu_grad)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *dy = x[0], *at = x[1], alpha = (T)attrs[0];

    SIMD_LOOP
    for (int64_t k = 0; k < n; k++)
        y[k] = at[k] > 0 ? dy[k] : alpha * dy[k];
}

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

LINKAGE void FN(pow)(T *y, const T *const *x, int64_t n, const float *attrs)
{
    const T *a = x[0], *b = x[1];
    bool all_two = true;

    (void)attrs;
    for (int64_t k = 0; all_two && k < n; k++)
        all_two = b[k] == 2;
    if (all_two) { // by far the most frequent exponent
        SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            y[k] = a[k] * a[k];
        return;
    }
    for (int64_t k = 0; k < n; k++)
        y[k] = POW(a[k], b[k]);
}
