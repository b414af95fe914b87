// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: elementwise loops. Only kernels.h includes this.
//
// A tile computes y[k] = f(x[0][k], x[1][k], ...) for k in 0..n-1, all contiguous; y may be any x.
// There are OT__TILE_INPUTS entries in x, NULL where there is no operand. A slope tile also gives
// the slope of y, as ot__slope_tile_f32 has it; either result may be x.
#ifndef OT_KERNELS_KERNELS_ELEMENTWISE_H
#define OT_KERNELS_KERNELS_ELEMENTWISE_H

#include "tensor/tensor.h"

enum { OT__TILE_INPUTS = 8 };

// ---- floating point ----
//
// tiles.def lists the tiles: those of the rows of unary.def and binary.def, and those by hand.

#define OT_TILE_FUNCTION_F32(name)                                                                 \
    void name(float *y, const float *const *x, int64_t n, const float *attrs);
#define OT_TILE_FUNCTION_F64(name)                                                                 \
    void name(double *y, const double *const *x, int64_t n, const float *attrs);

typedef void ot__slope_tile_f32(float *y, float *slope, const float *x, int64_t n,
                                const float *attrs);
typedef void ot__slope_tile_f64(double *y, double *slope, const double *x, int64_t n,
                                const float *attrs);

// f32: one table per instruction set (simd_elementwise.c).
typedef struct ot__tiles {
#define OT_TILE(name) void (*name)(float *y, const float *const *x, int64_t n, const float *attrs);
#define OT_SLOPE_TILE(name) ot__slope_tile_f32 *name##_slope;
#include "kernels/elementwise/tiles.def"
    void (*clip_mask)(void *context, int64_t first, int64_t last);
    void (*where)(void *y, const uint8_t *condition, const void *a, const void *b, int64_t n);
    // of 16 bits
    void (*where_16)(void *y, const uint8_t *condition, const void *a, const void *b, int64_t n);
} ot__tiles;

// f16 and bf16, by OT_F16 and OT_BF16: to f32 and back, rounding to nearest even (simd_floats.c).
typedef struct ot__floats {
    void (*widen[OT_BF16 + 1])(float *y, const uint16_t *x, int64_t n);
    void (*narrow[OT_BF16 + 1])(uint16_t *y, const float *x, int64_t n);
} ot__floats;

// ---- float_rows.c: rows that do not depend on each other, stored as f32, f16 or bf16 ----

// A tensor with `width` elements a row; all 0: none.
typedef struct ot__float_port {
    void *data;
    ot_dtype type;
    int64_t width;
    bool is_written; // else read
} ot__float_port;
enum { OT__FLOAT_PORTS = 5 };
typedef struct ot__float_rows {
    ot__float_port port[OT__FLOAT_PORTS];
    int64_t rows, grain; // grain: rows that are worth a thread
    // n rows from `first` on, in f32 at at[i]: in the tensor itself, or between conversions in a
    // buffer that a thread keeps in its cache. What is computed does not depend on n.
    void (*run)(const void *context, float *const *at, int64_t first, int64_t n);
    const void *context;
} ot__float_rows;
size_t ot__float_rows_bytes(const ot__float_rows *r,
                            int n_threads); // of buffers; 0: none is needed
void ot__float_rows_run(const ot__float_rows *r, void *buffer, int n_threads);

// ot__simd_<name>_f32: that of the best table (tiles.c).
#define OT_TILE(name) OT_TILE_FUNCTION_F32(ot__simd_##name##_f32)
#define OT_SLOPE_TILE(name) ot__slope_tile_f32 ot__simd_##name##_slope_f32;
#include "kernels/elementwise/tiles.def"

// f64: ot__ref_<name>_f64 by the C library (ref_elementwise.c).
#define OT_TILE(name) OT_TILE_FUNCTION_F64(ot__ref_##name##_f64)
#define OT_SLOPE_TILE(name) ot__slope_tile_f64 ot__ref_##name##_slope_f64;
#include "kernels/elementwise/tiles.def"

// ---- integers, which wrap around: ot__ref_<name>_i32 and _i64 (ref_elementwise.c) ----

#define OT_TILE_INT(name)                                                                          \
    void ot__ref_##name##_i32(int32_t *y, const int32_t *const *x, int64_t n, const float *attrs); \
    void ot__ref_##name##_i64(int64_t *y, const int64_t *const *x, int64_t n, const float *attrs);
OT_TILE_INT(abs)
OT_TILE_INT(add)
OT_TILE_INT(clip_integers)
OT_TILE_INT(div)  // towards zero; divisors are not 0
OT_TILE_INT(fmod) // sign of the dividend; divisors are not 0
OT_TILE_INT(max)
OT_TILE_INT(min)
OT_TILE_INT(mod) // sign of the divisor; divisors are not 0
OT_TILE_INT(mul)
OT_TILE_INT(neg)
OT_TILE_INT(pow)
OT_TILE_INT(prelu)
OT_TILE_INT(relu)
OT_TILE_INT(sign)
OT_TILE_INT(sub)
OT_TILE_INT(sum)
#undef OT_TILE_INT

// ---- y[k] = f(a[k], b[k]), or f(a[k]): rows of compare.def (ref_compare.c) and bits.def
// (ref_bits.c); y may be a ----

typedef void (*ot__pair_function)(void *y, const void *a, const void *b, int64_t n);

typedef enum ot__comparison {
#define OT_COMPARISON(name, symbol, since, age, operands, types, infer, flags, y)                  \
    OT__COMPARE_##symbol,
#define OT_FLOAT_TEST(symbol, y) OT__COMPARE_##symbol,
#include "kernels/elementwise/compare.def"
    OT__N_COMPARISONS
} ot__comparison;
ot__pair_function ot__ref_compare_find(ot__comparison comparison, ot_dtype dtype); // NULL: none

typedef enum ot__bits {
#define OT_BITS(name, symbol, since, operands, y) OT__BITS_##symbol,
#define OT_BITS_TILE(symbol, y) OT__BITS_##symbol,
#include "kernels/elementwise/bits.def"
    OT__N_BITS
} ot__bits;
ot__pair_function ot__ref_bits_find(ot__bits bits, ot_dtype dtype); // NULL: none

// ---- stretching (ref_stretch.c) ----

// y[k] for k in 0..n-1 = element start + k of x, stretched over axes of extents `dim` by strides of
// which the last is 0 or 1. Elements have 1, 2, 4, 8 or 16 bytes.
void ot__ref_stretch(void *y, const void *x, int ndim, const int64_t *dim, const int64_t *stride,
                     int64_t start, int64_t n, size_t size);

// ---- Clip and its mask (ref_clip_mask.c): mask = low <= x <= high, y may be x; for
// ot__parallel_for() ----

typedef struct ot__clip_mask {
    void *y;
    uint8_t *mask;
    const void *x, *low, *high; // the bounds: one element, NULL when there is none
} ot__clip_mask;
void ot__ref_clip_mask_f32(void *context, int64_t first, int64_t last);
void ot__ref_clip_mask_f64(void *context, int64_t first, int64_t last);

// ---- ref_binarize.c: y[k] = x[k] > threshold ? 1 : 0, of any numbers ----

void ot__ref_binarize(void *y, const void *x, ot_dtype dtype, int64_t count, double threshold);

// ---- choosing (ref_where.c): y[k] = condition[k] ? a[k] : b[k], by element size 1, 2, 4, 8 or 16;
// y may be any operand of its size ----

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
                      const ot__div_grad *p, ot_dtype dtype);
// ---- div_grad_rows.c ----

// The same in f32 where each row of a (rows, columns) has one divisor: b and db (rows). da or db
// may be NULL.
void ot__div_grad_rows(float *da, float *db, const float *dy, const float *a, const float *b,
                       int64_t rows, int64_t columns);
// f32 or f64

#endif
