// SPDX-License-Identifier: Apache-2.0
// The f32 tiles for the processor at hand.
#include "kernels/kernels.h"

#include "kernels/simd.h"

extern const ot__tiles ot__tiles_base;
#if OT_HAS_X86_ISAS
extern const ot__tiles ot__tiles_avx2, ot__tiles_avx512;
#endif

static const ot__tiles *const tables[] = {
    [OT__ISA_BASE] = &ot__tiles_base,
#if OT_HAS_X86_ISAS
    [OT__ISA_AVX2] = &ot__tiles_avx2,
    [OT__ISA_AVX512] = &ot__tiles_avx512,
#endif
};

const ot__tiles *ot__tiles_best(void)
{
    return tables[ot__isa_best()];
}

const ot__tiles *ot__tiles_at(int i)
{
    return i <= (int)ot__isa_best() ? tables[i] : NULL;
}

#define OT_TILE(name)                                                                              \
    void ot__simd_##name##_f32(float *y, const float *const *x, int64_t n, const float *attrs)     \
    {                                                                                              \
        ot__tiles_best()->name(y, x, n, attrs);                                                    \
    }
#include "tiles.def"
