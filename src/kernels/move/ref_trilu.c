// SPDX-License-Identifier: Apache-2.0
// The upper or lower triangle of matrices.
#include <string.h>

#include "kernels/kernels.h"

typedef struct job {
    char *y;
    const char *x;
    int64_t rows, cols, k;
    bool is_upper;
    size_t size;
} job;

static void trilu_rows(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    for (int64_t row = first; row < last; row++) {
        // Columns 0 .. split - 1 are one side, the others the other; k may be any number, so it is
        // bounded first.
        const int64_t r = row % j->rows, k = OT_MAX(OT_MIN(j->k, j->cols), -j->rows);
        const int64_t split = OT_MAX(OT_MIN(r + k + !j->is_upper, j->cols), 0);
        const size_t at = (size_t)(row * j->cols) * j->size, left = (size_t)split * j->size;
        const size_t right = (size_t)(j->cols - split) * j->size;
        const size_t keep_at = j->is_upper ? left : 0, keep = j->is_upper ? right : left;

        if (j->y != j->x)
            memcpy(j->y + at + keep_at, j->x + at + keep_at, keep);
        memset(j->y + at + (j->is_upper ? 0 : left), 0, j->is_upper ? left : right);
    }
}

void ot__ref_trilu(void *y, const void *x, int64_t batch, int64_t rows, int64_t cols, int64_t k,
                   bool is_upper, size_t size)
{
    job j = {y, x, rows, cols, k, is_upper, size};

    if (cols > 0)
        ot__parallel_for(batch * rows, OT_PAR_MIN / cols + 1, trilu_rows, &j);
}
