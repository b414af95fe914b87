// SPDX-License-Identifier: Apache-2.0
// The table of f32 optimizer updates for the processor at hand.
#include "kernels/kernels.h"

#include "kernels/simd.h"

extern const ot__updates ot__updates_base;
#if OT_HAS_X86_ISAS
extern const ot__updates ot__updates_avx2, ot__updates_avx512;
#endif

static const ot__updates *const tables[] = {
    [OT__ISA_BASE] = &ot__updates_base,
#if OT_HAS_X86_ISAS
    [OT__ISA_AVX2] = &ot__updates_avx2,
    [OT__ISA_AVX512] = &ot__updates_avx512,
#endif
};

const ot__updates *ot__updates_best(void)
{
    return tables[ot__isa_best()];
}

const ot__updates *ot__updates_at(int i)
{
    return i <= (int)ot__isa_best() ? tables[i] : NULL;
}
