// SPDX-License-Identifier: Apache-2.0
// One value in every element, and plain copies, over threads.
#include <string.h>

#include "kernels/kernels.h"

enum { PAR_BYTES = 65536 };

void ot__ref_fill(void *y, const void *value, int64_t n, size_t size)
{
    ot__strided s = {.size = size};

    ot__strided_add_axis(&s, n, 0, 1);
    ot__strided_simplify(&s);
    ot__ref_strided_copy(y, value, &s);
}

typedef struct copy_job {
    char *y;
    const char *x;
} copy_job;

static void copy_part(void *context, int64_t first, int64_t last)
{
    const copy_job *job = context;

    memcpy(job->y + first, job->x + first, (size_t)(last - first));
}

void ot__ref_copy_bytes(void *y, const void *x, size_t n_bytes)
{
    copy_job job = {y, x};

    if (y != x && n_bytes > 0)
        ot__parallel_for((int64_t)n_bytes, PAR_BYTES, copy_part, &job);
}
