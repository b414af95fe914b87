// SPDX-License-Identifier: Apache-2.0
// Arrays of f16 and bf16 to f32 and back.
#include "kernels/kernels.h"

#include "kernels/simd_floats.h"

static void widen_f16(float *y, const uint16_t *x, int64_t n)
{
    int64_t done = 0;

#if OT_VECTOR_F16
    for (; done + OT_VECTOR_LANES <= n; done += OT_VECTOR_LANES)
        ot__vector_store(y + done, ot__vector_of_f16(x + done));
#endif
    OT_SIMD_LOOP
    for (int64_t i = done; i < n; i++)
        y[i] = ot__vwiden_f16(x[i]);
}

static void narrow_f16(uint16_t *y, const float *x, int64_t n)
{
    int64_t done = 0;

#if OT_VECTOR_F16
    for (; done + OT_VECTOR_LANES <= n; done += OT_VECTOR_LANES)
        ot__vector_to_f16(y + done, ot__vector_load(x + done));
#endif
    OT_SIMD_LOOP
    for (int64_t i = done; i < n; i++)
        y[i] = ot__vnarrow_f16(x[i]);
}

static void widen_bf16(float *y, const uint16_t *x, int64_t n)
{
    OT_SIMD_LOOP
    for (int64_t i = 0; i < n; i++)
        y[i] = ot__vwiden_bf16(x[i]);
}

static void narrow_bf16(uint16_t *y, const float *x, int64_t n)
{
    OT_SIMD_LOOP
    for (int64_t i = 0; i < n; i++)
        y[i] = ot__vnarrow_bf16(x[i]);
}

const ot__floats OT_ISA_NAME(ot__floats) = {
    .widen = {[OT_F16] = widen_f16, [OT_BF16] = widen_bf16},
    .narrow = {[OT_F16] = narrow_f16, [OT_BF16] = narrow_bf16},
};
