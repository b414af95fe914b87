// SPDX-License-Identifier: Apache-2.0
// Zeros, or another value, with single elements of a second one: diagonals and one-hot vectors.
#include "kernels/kernels.h"

typedef struct one_hot_job {
    void *y;
    const int64_t *index;
    const void *on;
    int64_t depth, inner;
} one_hot_job;

#define TEMPLATE "kernels/move/ref_one_hot.tmpl.h"
#include "kernels/by_size.tmpl.h"

void ot__ref_one_hot(void *y, const int64_t *index, const void *off, const void *on, int64_t outer,
                     int64_t depth, int64_t inner, size_t size)
{
    one_hot_job j = {y, index, on, depth, inner};

    ot__ref_fill(y, off, outer * depth * inner, size);
    ot__parallel_for(outer * inner, OT_PAR_MIN, OT__BY_SIZE(put_ones, size), &j);
}

void ot__ref_eye(void *y, const void *one, int64_t rows, int64_t cols, int64_t diagonal,
                 size_t size)
{
    const uint64_t zero[2] = {0};
    const int64_t first = OT_MAX(-diagonal, 0), last = OT_MIN(rows, cols - diagonal);
    ot__strided s = {.size = size, .y_offset = first * cols + first + diagonal};

    ot__ref_fill(y, zero, rows * cols, size);
    if (first >= last)
        return;
    ot__strided_add_axis(&s, last - first, 0, cols + 1);
    ot__strided_simplify(&s);
    ot__ref_strided_copy(y, one, &s);
}
