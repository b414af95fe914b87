// SPDX-License-Identifier: Apache-2.0
// Pieces of a tensor that is stretched along some axes.
#include <string.h>

#include "kernels/kernels.h"

#define TEMPLATE "kernels/elementwise/ref_stretch.tmpl.h"
#include "kernels/by_size.tmpl.h"

void ot__ref_stretch(void *y, const void *x, int ndim, const int64_t *dim, const int64_t *stride,
                     int64_t start, int64_t n, size_t size)
{
    OT__BY_SIZE(stretch, size)(y, x, ndim, dim, stride, start, n);
}
