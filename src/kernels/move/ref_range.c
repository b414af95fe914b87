// SPDX-License-Identifier: Apache-2.0
// Evenly spaced numbers.
#include "kernels/kernels.h"

void ot__ref_range_f64(double *y, double start, double delta, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = start + (double)i * delta;
}

void ot__ref_range_f32(float *y, float start, float delta, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((double)start + (double)i * (double)delta);
}

// Integers stay below the limit, which fits the type; only the unused element behind the last would
// overflow.

void ot__ref_range_i64(int64_t *y, int64_t start, int64_t delta, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
}

void ot__ref_range_i32(int32_t *y, int32_t start, int32_t delta, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (int32_t)(start + i * delta);
}

void ot__ref_range_i16(int16_t *y, int16_t start, int16_t delta, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (int16_t)(start + i * delta);
}
