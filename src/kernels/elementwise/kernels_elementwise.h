// SPDX-License-Identifier: Apache-2.0
// Part of the face of `kernels`: elementwise loops. Only kernels.h includes this.
//
// A tile computes y[k] = f(x[0][k], x[1][k], ...) for k in 0..n-1, all contiguous; y may be any x.
// There are OT__TILE_INPUTS entries in x, NULL where there is no operand.
#ifndef OT_KERNELS_KERNELS_ELEMENTWISE_H
#define OT_KERNELS_KERNELS_ELEMENTWISE_H

#include "tensor/tensor.h"

enum { OT__TILE_INPUTS = 8 };

// ---- floating point: X(name) ----

#define OT_TILE_LIST(X)                                                                            \
    X(abs)                                                                                         \
    X(add)                                                                                         \
    X(bias_fast_gelu_grad) /* dY, X, B */                                                          \
    X(bias_gelu)                                                                                   \
    X(bias_gelu_grad) /* dY, X, B */                                                               \
    X(clip)           /* X, min?, max? */                                                          \
    X(div)                                                                                         \
    X(erf)                                                                                         \
    X(exp)                                                                                         \
    X(fast_gelu)      /* X, bias? */                                                               \
    X(fast_gelu_grad) /* dY, X */                                                                  \
    X(floor)                                                                                       \
    X(gelu)                                                                                        \
    X(gelu_grad)       /* dY, X */                                                                 \
    X(leaky_relu)      /* alpha */                                                                 \
    X(leaky_relu_grad) /* dY, Y; alpha */                                                          \
    X(log)                                                                                         \
    X(max) /* any number */                                                                        \
    X(min) /* any number */                                                                        \
    X(mul)                                                                                         \
    X(neg)                                                                                         \
    X(pow)                                                                                         \
    X(quick_gelu)      /* alpha */                                                                 \
    X(quick_gelu_grad) /* dY, X; alpha */                                                          \
    X(reciprocal)                                                                                  \
    X(relu)                                                                                        \
    X(relu_grad) /* dY, X or Y */                                                                  \
    X(sigmoid)                                                                                     \
    X(sigmoid_grad) /* dY, Y */                                                                    \
    X(sign)                                                                                        \
    X(softplus)                                                                                    \
    X(sqrt)                                                                                        \
    X(sub)                                                                                         \
    X(sum) /* any number */                                                                        \
    X(tanh)                                                                                        \
    X(tanh_grad) /* dY, Y */

// f32: one table per instruction set (simd_elementwise.c); the one for this processor is chosen in
// tiles.c.
typedef struct ot__tiles {
#define OT_TILE_MEMBER(name)                                                                       \
    void (*name)(float *y, const float *const *x, int64_t n, const float *attrs);
    OT_TILE_LIST(OT_TILE_MEMBER)
#undef OT_TILE_MEMBER
} ot__tiles;
const ot__tiles *ot__tiles_best(void);
const ot__tiles *ot__tiles_at(int i); // every table this processor can run, best last, then NULL

// f64: ot__ref_<name>_f64 by the C library (ref_elementwise.c), and those without a vector form.
#define OT_TILE_F64(name)                                                                          \
    void ot__ref_##name##_f64(double *y, const double *const *x, int64_t n, const float *attrs);
OT_TILE_LIST(OT_TILE_F64)
OT_TILE_F64(cos)
OT_TILE_F64(fmod)
OT_TILE_F64(mod) // sign of the divisor
OT_TILE_F64(sin)
#undef OT_TILE_F64

// ---- integers, which wrap around: ot__ref_<name>_i32 and _i64 (ref_elementwise.c) ----

#define OT_TILE_INT(name)                                                                          \
    void ot__ref_##name##_i32(int32_t *y, const int32_t *const *x, int64_t n, const float *attrs); \
    void ot__ref_##name##_i64(int64_t *y, const int64_t *const *x, int64_t n, const float *attrs);
OT_TILE_INT(abs)
OT_TILE_INT(add)
OT_TILE_INT(clip)
OT_TILE_INT(div)  // towards zero; divisors are not 0
OT_TILE_INT(fmod) // sign of the dividend; divisors are not 0
OT_TILE_INT(max)
OT_TILE_INT(min)
OT_TILE_INT(mod) // sign of the divisor; divisors are not 0
OT_TILE_INT(mul)
OT_TILE_INT(neg)
OT_TILE_INT(pow)
OT_TILE_INT(relu)
OT_TILE_INT(sign)
OT_TILE_INT(sub)
OT_TILE_INT(sum)
#undef OT_TILE_INT

// ---- comparing (ref_compare.c): y[k] = a[k] <op> b[k] as bool ----

typedef enum ot__comparison {
    OT__EQUAL,
    OT__LESS,
    OT__LESS_OR_EQUAL,
    OT__GREATER,
    OT__GREATER_OR_EQUAL,
    OT__N_COMPARISONS
} ot__comparison;
typedef void (*ot__compare_function)(uint8_t *y, const void *a, const void *b, int64_t n);
ot__compare_function ot__ref_compare_find(ot__comparison comparison, ot_dtype dtype); // NULL: none

// ---- choosing (ref_where.c): y[k] = condition[k] ? a[k] : b[k], by element size 1, 2, 4, 8 or 16
// ----

void ot__ref_where(void *y, const uint8_t *condition, const void *a, const void *b, int64_t n,
                   size_t size);

// ---- both gradients of a / b (ref_div_grad.c) ----

typedef struct ot__div_grad {
    int ndim;
    int64_t dim[OT_MAX_NDIM];                             // of dy
    int64_t a_stride[OT_MAX_NDIM], b_stride[OT_MAX_NDIM]; // of ot__broadcast_strides()
    int64_t count, a_count, b_count;
    double *da_sum, *db_sum; // scratch of a_count and b_count; NULL: that gradient is not wanted
} ot__div_grad;
void ot__ref_div_grad(void *da, void *db, const void *dy, const void *a, const void *b,
                      const ot__div_grad *p, ot_dtype dtype); // f32 or f64

#endif
