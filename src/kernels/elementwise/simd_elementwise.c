// SPDX-License-Identifier: Apache-2.0
// Elementwise loops in f32, compiled once per instruction set (OT_ISA).
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/simd.h"

#define T float
#define FN(name) name##_f32
#define LINKAGE static
#define INLINE OT_SIMD_INLINE
#define SIMD_LOOP OT_SIMD_LOOP
#define EXP ot__vexp
#define DECAY ot__vdecay
#define EXPM1 ot__vexpm1
#define LOG ot__vlog
#define LOG1P ot__vlog1p
#define ERF ot__verf
#define TANH ot__vtanh
#define SIN ot__vsin
#define COS ot__vcos
#define TAN ot__vtan
#define CIRCLE_TAKES(x) (fabsf(x) <= OT_VCIRCLE_LARGEST)
#define ASIN ot__vasin
#define ACOS ot__vacos
#define ATAN ot__vatan
#define SINH ot__vsinh
#define COSH ot__vcosh
#define ASINH ot__vasinh
#define ACOSH ot__vacosh
#define ATANH ot__vatanh
#define ROUND ot__vround
#define POW ot__vpow
#define POW_TAKES ot__vpow_takes
#define POW_LIBRARY powf
#define FMOD ot__vfmod
#define FMOD_TAKES ot__vfmod_takes
#define FMOD_LIBRARY fmodf
#define SQRT sqrtf
#define FLOOR floorf
#define CEIL ceilf
#define ABS fabsf
#include "tiles.tmpl.h"

#include "clip_mask.tmpl.h"
#include "where.tmpl.h"

#undef T
#undef FN
#define T uint16_t
#define FN(name) name##_16
#include "where.tmpl.h"

const ot__tiles OT_ISA_NAME(ot__tiles) = {
#define OT_TILE(name) .name = name##_f32,
#define OT_SLOPE_TILE(name) .name##_slope = name##_slope_f32,
#include "tiles.def"
    .clip_mask = clip_mask_f32,
    .where = where_f32,
    .where_16 = where_16,
};
