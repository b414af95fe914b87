// SPDX-License-Identifier: Apache-2.0
// Part of kernels.c: the limits of a product, in vectors of LANES floats of one instruction set.

// n times a multiply-add on each lane of MULTIPLY_ADDS registers.
TARGET static float FN(multiply_adds)(int64_t n)
{
    typedef float vector __attribute__((vector_size(4 * LANES)));
    vector x[MULTIPLY_ADDS], sum = {0};
    const vector half = sum + 0.5F, one = sum + 1.0F;

    for (int i = 0; i < MULTIPLY_ADDS; i++)
        x[i] = sum + (float)(n + i); // not known here: what stays as it is would be left out
    for (int64_t k = 0; k < n; k++)
        _Pragma("GCC unroll 16") for (int i = 0; i < MULTIPLY_ADDS; i++) x[i] = x[i] * half + one;
    for (int i = 0; i < MULTIPLY_ADDS; i++)
        sum += x[i];
    return sum[0];
}

// Reads n floats of x, and writes as many of y as there are.
TARGET static float FN(touch)(float *y, int64_t n_y, const float *x, int64_t n)
{
    typedef float vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
    vector sum[4] = {{0}};

    for (int64_t i = 0; i + 4 * LANES <= n; i += 4 * LANES)
        _Pragma("GCC unroll 4") for (int v = 0; v < 4; v++) sum[v] +=
            *(const vector *)(const void *)(x + i + v * LANES);
    for (int64_t i = 0; i + LANES <= n_y; i += LANES)
        *(vector *)(void *)(y + i) = sum[0];
    return sum[0][0] + sum[1][0] + sum[2][0] + sum[3][0];
}

#undef FN
#undef LANES
#undef TARGET
