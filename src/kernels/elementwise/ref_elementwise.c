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
#define EXPM1 expm1
#define LOG log
#define LOG1P log1p
#define ERF erf
#define TANH tanh
#define POW pow
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
#define LIBRARY_1 TILE_1
#include "tiles.tmpl.h"
#undef T
#undef FN
#undef C

void ot__ref_fmod_f64(double *y, const double *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = fmod(x[0][k], x[1][k]);
}

void ot__ref_mod_f64(double *y, const double *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t k = 0; k < n; k++) {
        const double b = x[1][k], r = fmod(x[0][k], b);

        if (r == 0)
            y[k] = copysign(0, b);
        else
            y[k] = (r < 0) != (b < 0) ? r + b : r;
    }
}

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
