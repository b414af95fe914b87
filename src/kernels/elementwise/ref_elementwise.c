// SPDX-License-Identifier: Apache-2.0
// Elementwise tiles in f64 by the C library: the oracle of the vector ones. Integers as ONNX has
// them.
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

#define T double
#define FN(name) ot__ref_##name##_f64
#define LINKAGE
#define INLINE static inline
#define SIMD_LOOP
#define EXP exp
#define DECAY(x) exp(-(x))
#define EXPM1 expm1
#define LOG log
#define LOG1P log1p
#define ERF erf
#define TANH tanh
#define POW pow
#define POW_TAKES(a, b) true
#define POW_LIBRARY pow
#define FMOD fmod
#define FMOD_TAKES(a, b) true
#define FMOD_LIBRARY fmod
#define CIRCLE_TAKES(x) true
#define SQRT sqrt
#define FLOOR floor
#define CEIL ceil
#define ABS fabs
#define ROUND nearbyint // halves go to the even neighbour
#define SIN sin
#define COS cos
#define TAN tan
#define ASIN asin
#define ACOS acos
#define ATAN atan
#define SINH sinh
#define COSH cosh
#define ASINH asinh
#define ACOSH acosh
#define ATANH atanh
#include "tiles.tmpl.h"
#undef T
#undef FN
#undef C

#define T int32_t
#define U uint32_t
#define FN(name) ot__ref_##name##_i32
#include "tiles_int.tmpl.h"
#undef T
#undef U
#undef FN
#define T int64_t
#define U uint64_t
#define FN(name) ot__ref_##name##_i64
#include "tiles_int.tmpl.h"
#undef T
#undef U
#undef FN
