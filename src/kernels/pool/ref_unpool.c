// SPDX-License-Identifier: Apache-2.0
// Elements put where indices say, zeros elsewhere.
#include <stdatomic.h>
#include <string.h>

#include "kernels/kernels.h"

typedef struct job {
    char *y;
    const char *x;
    const int64_t *indices;
    int64_t n_in, n_out; // elements of a plane
    size_t size;
    atomic_bool is_foreign; // an index is outside its own plane
} job;

#define TEMPLATE "kernels/pool/ref_unpool.tmpl.h"
#include "kernels/by_size.tmpl.h"

int64_t ot__ref_unpool(void *y, const void *x, const int64_t *indices, int64_t planes, int64_t n_in,
                       int64_t n_out, size_t size)
{
    job j = {.y = y, .x = x, .indices = indices, .n_in = n_in, .n_out = n_out, .size = size};

    ot__parallel_for(planes, OT_PAR_MIN / (n_in + n_out + 1) + 1, OT__BY_SIZE(unpool_planes, size),
                     &j);
    if (!atomic_load(&j.is_foreign))
        return -1;
    // Planes do not stay apart: one element after the other, so that the last of equal ones wins.
    memset(y, 0, (size_t)(planes * n_out) * size);
    for (int64_t i = 0; i < planes * n_in; i++) {
        if (indices[i] < 0 || indices[i] >= planes * n_out)
            return i;
        memcpy((char *)y + (size_t)indices[i] * size, (const char *)x + (size_t)i * size, size);
    }
    return -1;
}
