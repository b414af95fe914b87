// SPDX-License-Identifier: Apache-2.0
// Choosing between two arrays element by element, by element size.
#include "kernels/kernels.h"

#define TEMPLATE "kernels/elementwise/ref_where.tmpl.h"
#include "kernels/by_size.tmpl.h"

void ot__ref_where(void *y, const uint8_t *condition, const void *a, const void *b, int64_t n,
                   size_t size)
{
    switch (size) {
    case 1:
        where_1(y, condition, a, b, n);
        break;
    case 2:
        where_2(y, condition, a, b, n);
        break;
    case 4:
        where_4(y, condition, a, b, n);
        break;
    case 8:
        where_8(y, condition, a, b, n);
        break;
    default:
        where_16(y, condition, a, b, n);
        break;
    }
}
