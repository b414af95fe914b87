// SPDX-License-Identifier: Apache-2.0
// The processor at hand, and the tables of vector code for it.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"

#if defined(__x86_64__)
#define OF_EACH_ISA(table) &table##_base, &table##_avx2, &table##_avx512
#else
#define OF_EACH_ISA(table) &table##_base
#endif

static ot__isa highest = OT__ISA_LAST;

const char *ot__isa_name(ot__isa isa)
{
    static const char *const names[] = {"base", "avx2", "avx512", "avx512_bf16"};

    return names[isa];
}

ot__isa ot__isa_wanted(void)
{
    enum { NOT_READ = -1 };
    static _Atomic int wanted = NOT_READ;
    const char *text;
    int found = atomic_load(&wanted);

    if (found != NOT_READ) // kernels ask for every few elements
        return (ot__isa)found;
    text = getenv("OT_ISA");
    found = OT__ISA_LAST + 1;
    for (int isa = 0; text != NULL && isa <= OT__ISA_LAST; isa++)
        if (strcmp(text, ot__isa_name((ot__isa)isa)) == 0)
            found = isa;
    if (text != NULL && found > OT__ISA_LAST)
        ot__log(OT_LOG_WARNING,
                "OT_ISA is '%.20s', expected base, avx2, avx512 or avx512_bf16: it has no effect",
                text);
    found = OT_MIN(found, (int)OT__ISA_LAST);
    atomic_store(&wanted, found);
    return (ot__isa)found;
}

static ot__isa of_processor(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return __builtin_cpu_supports("avx512bf16") ? OT__ISA_AVX512_BF16 : OT__ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return OT__ISA_AVX2;
#endif
    return OT__ISA_BASE;
}

ot__isa ot__isa_best(void)
{
    const ot__isa limit = OT_MIN(ot__isa_wanted(), highest);

    return OT_MIN(of_processor(), limit);
}

void ot__isa_limit(ot__isa isa)
{
    highest = isa;
}

bool ot__is_intel(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("intel") != 0;
#else
    return false;
#endif
}

bool ot__is_zen_3_or_4(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amdfam19h") != 0;
#else
    return false;
#endif
}

int64_t ot__second_cache(void)
{
    enum { NOT_READ = -1 };
    static _Atomic long read = NOT_READ; // the question takes tens of microseconds
    long bytes = atomic_load(&read);

    if (bytes != NOT_READ)
        return bytes;
#ifdef _SC_LEVEL2_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    bytes = OT_MAX(bytes, 0);
    atomic_store(&read, bytes);
    return bytes;
}

#define DEFINE_CHOICE(name)                                                                        \
    static const ot__##name *const name##_by_isa[] = {OF_EACH_ISA(ot__##name)};                    \
    const ot__##name *ot__##name##_best(void)                                                      \
    {                                                                                              \
        return name##_by_isa[OT_MIN((int)ot__isa_best(), (int)OT_COUNT(name##_by_isa) - 1)];       \
    }                                                                                              \
    const ot__##name *ot__##name##_at(int i)                                                       \
    {                                                                                              \
        return i < (int)OT_COUNT(name##_by_isa) && i <= (int)ot__isa_best() ? name##_by_isa[i]     \
                                                                            : NULL;                \
    }
OT_ISA_TABLES(DEFINE_CHOICE)
