// SPDX-License-Identifier: Apache-2.0
// Elements and slices that are chosen by a condition: how many, and which.
#include <string.h>

#include "kernels/kernels.h"

// ---- slices ----

int64_t ot__ref_count_true(const void *condition, int64_t n)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        count += ((const uint8_t *)condition)[i] != 0;
    return count;
}

void ot__ref_true_offsets(int64_t *offset, const void *condition, int64_t n, int64_t outer,
                          int64_t extent, int64_t inner)
{
    int64_t chosen = 0;

    if (outer == 0)
        return;
    for (int64_t i = 0; i < n; i++)
        if (((const uint8_t *)condition)[i] != 0)
            offset[chosen++] = i * inner;
    for (int64_t o = 1; o < outer; o++)
        for (int64_t i = 0; i < chosen; i++)
            offset[o * chosen + i] = offset[i] + o * extent * inner;
}

// ---- elements ----

// The bits of an element that are not all 0 in a number that is not 0.
static uint64_t value_bits(ot_dtype dtype)
{
    const int n_bits = (int)ot_dtype_size(dtype) * 8 - ot__dtype_is_float(dtype); // no sign

    return UINT64_MAX >> (64 - n_bits);
}

#define TEMPLATE "kernels/move/ref_select.tmpl.h"
#define T uint8_t
#define SUFFIX 1
#include "kernels/by_one.tmpl.h"
#define T uint16_t
#define SUFFIX 2
#include "kernels/by_one.tmpl.h"
#define T uint32_t
#define SUFFIX 4
#include "kernels/by_one.tmpl.h"
#define T uint64_t
#define SUFFIX 8
#include "kernels/by_one.tmpl.h"
#define BY_NUMBER_SIZE(name, size)                                                                 \
    ((size) == 1 ? name##_1 : (size) == 2 ? name##_2 : (size) == 4 ? name##_4 : name##_8)

int64_t ot__ref_count_nonzero(const void *x, ot_dtype dtype, int64_t n)
{
    return BY_NUMBER_SIZE(count_nonzero, ot_dtype_size(dtype))(x, n, value_bits(dtype));
}

void ot__ref_nonzero(int64_t *y, const void *x, ot_dtype dtype, const ot_shape *shape,
                     int64_t count)
{
    const int last = shape->ndim - 1;
    const int64_t row = last < 0 ? 1 : shape->dim[last];
    int64_t at[OT_MAX_NDIM] = {0}, rows = 1, found = 0;

    for (int k = 0; k < last; k++)
        rows *= shape->dim[k];
    for (int64_t r = 0; r < rows && found < count; r++) {
        const int64_t first = found;

        found = BY_NUMBER_SIZE(row_nonzero, ot_dtype_size(dtype))(
            y + (last < 0 ? 0 : last * count), x, r * row, row, found, value_bits(dtype));
        for (int k = 0; k < last; k++)
            for (int64_t i = first; i < found; i++)
                y[k * count + i] = at[k];
        for (int k = last - 1; k >= 0; k--) { // the next row
            if (++at[k] < shape->dim[k])
                break;
            at[k] = 0;
        }
    }
}
