// SPDX-License-Identifier: Apache-2.0
// Optimizer updates in portable C, for both element types: the oracle of simd_optimizer.c.
#include <float.h>
#include <math.h>

#include "kernels/kernels.h"

static inline float root_f32(float x)
{
    return sqrtf(x);
}

static inline double root_f64(double x)
{
    return sqrt(x);
}

#define OT_UPDATE_LOOP
#define OT_UPDATE_TABLE FN(ot__ref_updates)
#define TEMPLATE "kernels/optimizer/ref_optimizer.tmpl.h"
#include "kernels/by_float.tmpl.h"
