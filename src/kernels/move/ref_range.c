// SPDX-License-Identifier: Apache-2.0
// Evenly spaced numbers, made in the widest type a piece at a time.
#include "kernels/kernels.h"

enum { PIECE = 64 };

void ot__ref_range_ints(void *y, ot_dtype dtype, int64_t start, int64_t delta, int64_t n)
{
    const size_t size = ot_dtype_size(dtype);
    int64_t piece[PIECE];

    // They stay below the limit, which fits the type; only the unused element behind the last would
    // overflow.
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t m = OT_MIN((int64_t)PIECE, n - at);

        for (int64_t i = 0; i < m; i++)
            piece[i] = (int64_t)((uint64_t)start + (uint64_t)(at + i) * (uint64_t)delta);
        (void)ot__convert((char *)y + (size_t)at * size, dtype, piece, OT_I64, m);
    }
}

void ot__ref_range_reals(void *y, ot_dtype dtype, double start, double delta, int64_t n)
{
    const size_t size = ot_dtype_size(dtype);
    double piece[PIECE];

    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t m = OT_MIN((int64_t)PIECE, n - at);

        for (int64_t i = 0; i < m; i++)
            piece[i] = start + (double)(at + i) * delta;
        (void)ot__convert((char *)y + (size_t)at * size, dtype, piece, OT_F64, m);
    }
}
