// SPDX-License-Identifier: Apache-2.0
// An allocator that counts what is held, and the most that was.
#ifndef BENCH_COUNTING_H
#define BENCH_COUNTING_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTING_HEADER = 64 }; // bytes before a block, for its size

static _Atomic size_t now_held, most_held;

static void *counting_reallocate(void *context, void *block, size_t n_bytes)
{
    char *start = block == NULL ? NULL : (char *)block - COUNTING_HEADER;
    size_t before = 0, after, most = atomic_load(&most_held);

    (void)context;
    if (start != NULL)
        memcpy(&before, start, sizeof before);
    start = realloc(start, n_bytes + COUNTING_HEADER);
    if (start == NULL)
        return NULL;
    memcpy(start, &n_bytes, sizeof n_bytes);
    after = atomic_fetch_add(&now_held, n_bytes - before) + n_bytes - before;
    while (most < after && !atomic_compare_exchange_weak(&most_held, &most, after))
        ;
    return start + COUNTING_HEADER;
}

static void counting_release(void *context, void *block)
{
    char *start = (char *)block - COUNTING_HEADER;
    size_t n_bytes;

    (void)context;
    memcpy(&n_bytes, start, sizeof n_bytes);
    atomic_fetch_sub(&now_held, n_bytes);
    free(start);
}

#endif
