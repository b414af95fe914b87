// SPDX-License-Identifier: Apache-2.0
// The tables of vector code for the processor at hand.
#include "kernels/kernels.h"

#if defined(__x86_64__)
#define OF_EACH_ISA(table) &table##_base, &table##_avx2, &table##_avx512
#else
#define OF_EACH_ISA(table) &table##_base
#endif

static ot__isa highest = OT__ISA_AVX512;

static ot__isa of_processor(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return OT__ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return OT__ISA_AVX2;
#endif
    return OT__ISA_BASE;
}

ot__isa ot__isa_best(void)
{
    return OT_MIN(of_processor(), highest);
}

void ot__isa_limit(ot__isa isa)
{
    highest = isa;
}

#define DEFINE_CHOICE(name)                                                                        \
    static const ot__##name *const name##_by_isa[] = {OF_EACH_ISA(ot__##name)};                    \
    const ot__##name *ot__##name##_best(void)                                                      \
    {                                                                                              \
        return name##_by_isa[ot__isa_best()];                                                      \
    }                                                                                              \
    const ot__##name *ot__##name##_at(int i)                                                       \
    {                                                                                              \
        return i <= (int)ot__isa_best() ? name##_by_isa[i] : NULL;                                 \
    }
OT_ISA_TABLES(DEFINE_CHOICE)
