// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

#include <stddef.h>

#include "kernels/simd.h"

enum { LANES = 16 };

// The sum of x * y in f64, which the compiler keeps in as many parts as there are lanes.
static double product_sum(const float *x, const float *y, int64_t n)
{
    double part[LANES] = {0}, sum = 0;
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            part[l] += (double)x[k + l] * (double)y[k + l];
    for (; k < n; k++)
        part[0] += (double)x[k] * (double)y[k];
    for (int l = 0; l < LANES; l++)
        sum += part[l];
    return sum;
}

// One divisor an element: nothing is summed.
static void div_grad_elements(float *da, float *db, const float *dy, const float *a, const float *b,
                              int64_t n)
{
    if (db != NULL) {
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            db[k] = -(dy[k] / b[k]) * (a[k] / b[k]);
    }
    if (da != NULL) {
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            da[k] = dy[k] / b[k];
    }
}

void ot__div_grad_rows(float *da, float *db, const float *dy, const float *a, const float *b,
                       int64_t rows, int64_t columns)
{
    if (columns == 1) {
        div_grad_elements(da, db, dy, a, b, rows);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        const float *g = dy + r * columns;
        const double divisor = (double)b[r];

        if (db != NULL)
            db[r] = (float)(-product_sum(g, a + r * columns, columns) / (divisor * divisor));
        if (da != NULL)
            for (int64_t k = 0; k < columns; k++)
                da[r * columns + k] = g[k] / b[r];
    }
}
