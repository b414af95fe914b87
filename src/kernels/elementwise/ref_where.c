// SPDX-License-Identifier: Apache-2.0
// Choosing between two arrays element by element, by element size.
#include "kernels/kernels.h"

#define SIMD_LOOP
#define TEMPLATE "kernels/elementwise/where.tmpl.h"
#include "kernels/by_size.tmpl.h"

void ot__ref_where(void *y, const uint8_t *condition, const void *a, const void *b, int64_t n,
                   size_t size)
{
    OT__BY_SIZE(where, size)(y, condition, a, b, n);
}
