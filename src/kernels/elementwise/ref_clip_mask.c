// SPDX-License-Identifier: Apache-2.0
// Clip and its mask in plain C: the oracle of the vector code.
#include "kernels/kernels.h"

#include <math.h>

#define LINKAGE
#define SIMD_LOOP
#define T float
#define FN(name) ot__ref_##name##_f32
#include "clip_mask.tmpl.h"
#undef T
#undef FN
#define T double
#define FN(name) ot__ref_##name##_f64
#include "clip_mask.tmpl.h"
