// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: reducing axes. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_REDUCE_H
#define OT_KERNELS_KERNELS_REDUCE_H

#include "tensor/tensor.h"

// X(symbol, type) for each element type of a set.
#define OT_REDUCE_FLOATS(X, symbol) X(symbol, f32) X(symbol, f64)
#define OT_REDUCE_NUMBERS(X, symbol) OT_REDUCE_FLOATS(X, symbol) X(symbol, i32) X(symbol, i64)
#define OT_REDUCE_ORDERED(X, symbol)                                                               \
    OT_REDUCE_NUMBERS(X, symbol)                                                                   \
    X(symbol, f16) X(symbol, bf16) X(symbol, i8) X(symbol, u8)
#define OT_REDUCE_ALL(X, symbol) OT_REDUCE_ORDERED(X, symbol) X(symbol, bool)
// Narrower types that are summed without being among those of the operator, also to f32.
#define OT_REDUCE_NARROW_NUMBERS(X, symbol) X(symbol, f16) X(symbol, bf16)
#define OT_REDUCE_NARROW_FLOATS(X, symbol)
#define OT_REDUCE_NARROW_ALL(X, symbol)

// ---- ref_reduce.c: reductions ----

// Axes of x, those of extent 1 left out and neighbours of one kind merged.
typedef struct ot__reduction {
    int n_kept, n_reduced;
    int64_t kept_dim[OT_MAX_NDIM], kept_stride[OT_MAX_NDIM];
    int64_t reduced_dim[OT_MAX_NDIM], reduced_stride[OT_MAX_NDIM];
    int64_t n_out, n_each; // outputs, and elements of x for each
    // The loops.
    bool is_row;               // the last axis is reduced
    int n_outer;               // reduced axes besides the row
    int64_t row;               // its length
    int64_t n_steps;           // combinations of the outer reduced axes
    int64_t columns, n_blocks; // of the last kept axis
} ot__reduction;
void ot__reduction_init(ot__reduction *r, const ot_shape *x, const bool *is_reduced);

// Offset in x of combination number `i` of the first n axes.
static inline int64_t ot__reduction_offset(int64_t i, const int64_t *dim, const int64_t *stride,
                                           int n)
{
    int64_t at = 0;

    for (int k = n - 1; k > 0; k--) {
        at += i % dim[k] * stride[k];
        i /= dim[k];
    }
    return n > 0 ? at + i * stride[0] : 0;
}

// ot__ref_<symbol>_<type>, and for which types. Sums of f32 are kept in f64; an order that does not
// depend on the number of threads.
#define OT_REDUCTIONS(X)                                                                           \
    X(reduce_sum, NUMBERS)                                                                         \
    X(reduce_mean, NUMBERS)                                                                        \
    X(reduce_l1, NUMBERS)                                                                          \
    X(reduce_sum_square, NUMBERS)                                                                  \
    X(reduce_l2, NUMBERS)                                                                          \
    X(reduce_prod, NUMBERS)                                                                        \
    X(reduce_log_sum, FLOATS)                                                                      \
    X(reduce_log_sum_exp, FLOATS)                                                                  \
    X(reduce_max, ALL)                                                                             \
    X(reduce_min, ALL)
#define OT_DECLARE_TYPE(symbol, type)                                                              \
    void ot__ref_##symbol##_##type(void *y, const void *x, const ot__reduction *r);
#define OT_DECLARE_NARROW(symbol, type)                                                            \
    OT_DECLARE_TYPE(symbol, type) OT_DECLARE_TYPE(symbol, type##_f32)
#define OT_DECLARE(symbol, types)                                                                  \
    OT_REDUCE_##types(OT_DECLARE_TYPE, symbol) OT_REDUCE_NARROW_##types(OT_DECLARE_NARROW, symbol)
OT_REDUCTIONS(OT_DECLARE)
#undef OT_DECLARE
#undef OT_DECLARE_NARROW
#undef OT_DECLARE_TYPE

// ---- simd_reduce.c: the same of f32 ----

// One table per instruction set. Sums and products are kept in f64, exponentials are those of f32.
typedef struct ot__reducers {
#define OT_MEMBER(symbol, types) void (*symbol)(float *y, const float *x, const ot__reduction *r);
    OT_REDUCTIONS(OT_MEMBER)
#undef OT_MEMBER
    int64_t row, columns, steps; // worked on at once: neighbours of a row; columns, and so many
                                 // elements of each
} ot__reducers;

// ---- ref_argmax.c ----

// y (outer, inner) = index of the greatest (is_max) or least element of x (outer, n, inner) along
// n, the first or last of equal ones; NaN beats everything. n >= 1.
#define OT_DECLARE(symbol, type)                                                                   \
    void ot__ref_##symbol##_##type(int64_t *y, const void *x, int64_t outer, int64_t n,            \
                                   int64_t inner, bool is_max, bool is_last);
OT_REDUCE_ORDERED(OT_DECLARE, arg)
#undef OT_DECLARE

// ---- ref_cumulative.c ----

// y, x (outer, n, inner): sums or products along n; exclusive: without the element itself; reverse:
// from the end. Unsigned integers have the bits of signed ones.
#define OT_DECLARE(symbol, type)                                                                   \
    void ot__ref_##symbol##_##type(void *y, const void *x, int64_t outer, int64_t n,               \
                                   int64_t inner, bool is_exclusive, bool is_reverse);
OT_REDUCE_NUMBERS(OT_DECLARE, cumsum)
OT_REDUCE_NUMBERS(OT_DECLARE, cumprod)
#undef OT_DECLARE
// dx of y = those products of x.
#define OT_DECLARE(symbol, type)                                                                   \
    void ot__ref_##symbol##_##type(void *dx, const void *dy, const void *x, int64_t outer,         \
                                   int64_t n, int64_t inner, bool is_exclusive, bool is_reverse);
OT_REDUCE_FLOATS(OT_DECLARE, cumprod_grad)
#undef OT_DECLARE

// ---- ref_top_k.c ----

// indices, values (outer, k, inner): the k greatest (is_largest) or least elements of x (outer, n,
// inner) along n, the best one first; of equal ones the first comes first, and NaN is greater than
// all. values may be NULL. k <= n.
#define OT_REDUCE_TOP(X, symbol)                                                                   \
    OT_REDUCE_NUMBERS(X, symbol)                                                                   \
    X(symbol, i8) X(symbol, i16) X(symbol, u8) X(symbol, u16) X(symbol, u32) X(symbol, u64)
#define OT_DECLARE(symbol, type)                                                                   \
    void ot__ref_##symbol##_##type(void *values, int64_t *indices, const void *x, int64_t outer,   \
                                   int64_t n, int64_t inner, int64_t k, bool is_largest);
OT_REDUCE_TOP(OT_DECLARE, top_k)
#undef OT_DECLARE

// ---- top_k.c: the same by sorting keys, or by a heap where k is small ----

typedef struct ot__top_k {
    void *values;
    int64_t *indices;
    const void *x;
    int64_t outer, n, inner, k; // n < 2^32
    bool is_largest;
} ot__top_k;
#define OT_DECLARE(symbol, type)                                                                   \
    size_t ot__##symbol##_bytes_##type(int64_t n); /* of scratch for a part */                     \
    void ot__##symbol##_##type(const ot__top_k *p, void *scratch, int n_parts);
OT_REDUCE_NUMBERS(OT_DECLARE, top_k)
#undef OT_DECLARE

// ---- ref_det.c ----

// y (batch): determinants of x (batch, n, n); dx: their gradient, also where x has no inverse. With
// scratch for n_parts parts of the batch.
size_t ot__ref_det_bytes(int64_t n, int n_parts);
#define OT_DECLARE(symbol, type)                                                                   \
    void ot__ref_##symbol##_##type(void *y, const void *x, int64_t batch, int64_t n, int n_parts,  \
                                   void *scratch);                                                 \
    void ot__ref_##symbol##_grad_##type(void *dx, const void *dy, const void *x, int64_t batch,    \
                                        int64_t n, int n_parts, void *scratch);
OT_REDUCE_FLOATS(OT_DECLARE, det)
#undef OT_DECLARE

// ---- det.c: the same by vector code, of matrices of 1 to OT__DET_SIDE_MAX rows ----

enum { OT__DET_SIDE_MAX = 128 };
size_t ot__simd_det_bytes(int64_t n, int n_parts);
void ot__simd_det(float *y, const float *x, int64_t batch, int64_t n, int n_parts, void *scratch);
void ot__simd_det_grad(float *dx, const float *dy, const float *x, int64_t batch, int64_t n,
                       int n_parts, void *scratch);

// Rows of n elements stand so many apart: not by powers of two, where columns would fall on the
// same lines of the cache.
static inline int64_t ot__det_stride(int64_t n)
{
    return n | 1;
}

// Of `count` matrices, which are as many as there are lanes at most: one table per instruction set
// (simd_det.c). Both give the lanes (bit l: lane l) whose result is left to the reference.
typedef struct ot__dets {
    int lanes;
    unsigned (*det)(float *y, const float *x, int64_t count, int64_t n, void *scratch);
    unsigned (*det_grad)(float *dx, const float *dy, const float *x, int64_t count, int64_t n,
                         void *scratch);
} ot__dets;

#endif
