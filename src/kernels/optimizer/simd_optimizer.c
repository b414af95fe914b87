// SPDX-License-Identifier: Apache-2.0
// Optimizer updates in f32, compiled once per instruction set (OT_ISA).
#include <float.h>

#include "kernels/kernels.h"

#include "kernels/simd.h"

typedef ot__updates ot__updates_simd;

OT_SIMD_INLINE float root_simd(float x)
{
    return sqrtf(x);
}

#define OT_UPDATE_LOOP OT_SIMD_LOOP
#define OT_UPDATE_TABLE OT_ISA_NAME(ot__updates)
#define TEMPLATE "kernels/optimizer/ref_optimizer.tmpl.h"
#define T float
#define SUFFIX simd
#include "kernels/by_one.tmpl.h"
