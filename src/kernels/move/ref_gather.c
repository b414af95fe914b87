// SPDX-License-Identifier: Apache-2.0
// Reading slices at given offsets.
#include <string.h>

#include "kernels/kernels.h"

enum { PAR_BYTES = 65536 };

typedef struct job {
    char *y;
    const char *x;
    const int64_t *offset;
    size_t size, slice_bytes;
} job;

static void gather_slices(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    for (int64_t i = first; i < last; i++)
        memcpy(j->y + (size_t)i * j->slice_bytes, j->x + (size_t)j->offset[i] * j->size,
               j->slice_bytes);
}

// Slices of one element: a memcpy of known size is a plain move.
static void gather_4(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    for (int64_t i = first; i < last; i++)
        memcpy(j->y + 4 * i, j->x + 4 * j->offset[i], 4);
}

static void gather_8(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    for (int64_t i = first; i < last; i++)
        memcpy(j->y + 8 * i, j->x + 8 * j->offset[i], 8);
}

void ot__ref_gather(void *y, const void *x, const int64_t *offset, int64_t n, int64_t slice,
                    size_t size)
{
    job j = {y, x, offset, size, (size_t)slice * size};

    if (n == 0 || slice == 0)
        return;
    ot__parallel_for(n, PAR_BYTES / (int64_t)j.slice_bytes + 1,
                     slice == 1 && size == 4   ? gather_4
                     : slice == 1 && size == 8 ? gather_8
                                               : gather_slices,
                     &j);
}
