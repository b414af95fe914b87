// SPDX-License-Identifier: Apache-2.0
// The instruction set of vector code.
#include "kernels/kernels.h"

#include "simd.h"

static ot__isa highest = OT__ISA_AVX512;

static ot__isa of_processor(void)
{
#if OT_HAS_X86_ISAS
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
