// The table of f32 tiles for the processor at hand.
#include "kernels/kernels.h"

#include "simd.h"

extern const ot__tiles ot__tiles_base;
#if OT_HAS_X86_ISAS
extern const ot__tiles ot__tiles_avx2, ot__tiles_avx512;
#endif

const ot__tiles *ot__tiles_best(void)
{
#if OT_HAS_X86_ISAS
    switch (ot__isa_best()) {
    case OT__ISA_AVX512:
        return &ot__tiles_avx512;
    case OT__ISA_AVX2:
        return &ot__tiles_avx2;
    default:
        break;
    }
#endif
    return &ot__tiles_base;
}
