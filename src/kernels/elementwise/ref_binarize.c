// SPDX-License-Identifier: Apache-2.0
// 1 where an element is greater than a threshold, else 0. Elements pass through f64 in pieces.
#include "kernels/kernels.h"

enum { PIECE = 256 };

typedef struct binarizing {
    char *y;
    const char *x;
    ot_dtype dtype;
    double threshold;
} binarizing;

static void binarize_part(void *context, int64_t first, int64_t last)
{
    const binarizing *b = context;
    const size_t size = ot_dtype_size(b->dtype);
    double piece[PIECE];

    for (int64_t i = first; i < last; i += PIECE) {
        const int64_t n = OT_MIN((int64_t)PIECE, last - i);

        (void)ot__convert(piece, OT_F64, b->x + (size_t)i * size, b->dtype, n);
        for (int64_t k = 0; k < n; k++)
            piece[k] = piece[k] > b->threshold;
        (void)ot__convert(b->y + (size_t)i * size, b->dtype, piece, OT_F64, n);
    }
}

void ot__ref_binarize(void *y, const void *x, ot_dtype dtype, int64_t count, double threshold)
{
    binarizing b = {y, x, dtype, threshold};

    ot__parallel_for(count, OT_PAR_MIN, binarize_part, &b);
}
