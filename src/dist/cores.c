// SPDX-License-Identifier: Apache-2.0
// Threads per rank: ranks on one machine share its processors.
#define _GNU_SOURCE // sched_getaffinity() and its sets
#include <sched.h>

#include "dist/dist.h"

enum { CORE_BITS = 64 };

void ot__processors_here(ot__processors *place)
{
    *place = (ot__processors){0};
#if defined(__linux__)
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (size_t i = 0; i < OT_MIN(CPU_SETSIZE, OT_CORE_WORDS * CORE_BITS); i++)
            if (CPU_ISSET(i, &set))
                place->cores[i / CORE_BITS] |= UINT64_C(1) << i % CORE_BITS;
#endif
}

static int count_cores(const ot__processors *place)
{
    int n = 0;

    for (int i = 0; i < OT_CORE_WORDS * CORE_BITS; i++)
        n += (int)(place->cores[i / CORE_BITS] >> i % CORE_BITS & 1);
    return n;
}

static bool share_cores(const ot__processors *a, const ot__processors *b)
{
    if (a->node != b->node)
        return false;
    for (int i = 0; i < OT_CORE_WORDS; i++)
        if ((a->cores[i] & b->cores[i]) != 0)
            return true;
    return false;
}

// A rank without a known processor shares none, so it counts itself apart.
static int count_sharers(const ot__processors *places, int n, int rank)
{
    int count = 1;

    for (int i = 0; i < n; i++)
        count += i != rank && share_cores(&places[i], &places[rank]);
    return count;
}

int ot__processors_threads(const ot__processors *places, int n, int rank)
{
    const int n_cores = count_cores(&places[rank]);

    return OT_MAX(n_cores / count_sharers(places, n, rank), 1);
}

bool ot__processors_are_crowded(const ot__processors *places, int n, int rank)
{
    return count_sharers(places, n, rank) > OT_MAX(count_cores(&places[rank]), 1);
}
