// SPDX-License-Identifier: Apache-2.0
// The f32 tiles for the processor at hand.
#include "kernels/kernels.h"

#define OT_TILE(name)                                                                              \
    void ot__simd_##name##_f32(float *y, const float *const *x, int64_t n, const float *attrs)     \
    {                                                                                              \
        ot__tiles_best()->name(y, x, n, attrs);                                                    \
    }
#define OT_SLOPE_TILE(name)                                                                        \
    void ot__simd_##name##_slope_f32(float *y, float *slope, const float *x, int64_t n,            \
                                     const float *attrs)                                           \
    {                                                                                              \
        ot__tiles_best()->name##_slope(y, slope, x, n, attrs);                                     \
    }
#include "tiles.def"
