// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: quantising. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_QUANTIZE_H
#define OT_KERNELS_KERNELS_QUANTIZE_H

#include "kernels/kernels_nn.h"

// x (outer, axis, inner); one scale and zero point for all of it (per_tensor), for each element of
// the axis (block 0), or for each `block` elements along the axis: (outer, blocks, inner).
typedef struct ot__quantization {
    int64_t outer, axis, inner;
    int64_t block, blocks;
    bool per_tensor;
    bool saturates; // where 8-bit floats are made
} ot__quantization;

// Any numeric element types. zero_point NULL: 0.
typedef struct ot__quantized_data {
    void *y;
    const void *x, *scale, *zero_point;
    ot_dtype y_dtype, x_dtype, scale_dtype, zero_point_dtype;
} ot__quantized_data;

// The integers of at most 32 bits; false for other types.
bool ot__ref_quantized_range(ot_dtype dtype, double *low, double *high);

// y = x / scale, rounded to even, + zero_point, brought into the range of y
void ot__ref_quantize(const ot__quantized_data *d, const ot__quantization *q);
// y = (x - zero_point) * scale
void ot__ref_dequantize(const ot__quantized_data *d, const ot__quantization *q);

// y = what is left of x by quantising to low .. high and back; mask: whether it was in the range.
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_fake_quant_##suffix(T *y, uint8_t *mask, const T *x, int64_t n, T scale,          \
                                     T zero_point, T low, T high);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_integer_product.c ----

// Zero points of 8 bits, of the type of what they belong to; element i of an axis has number
// i % count of them. None: 0.
typedef struct ot__zero_points {
    const void *data;
    int64_t count;
} ot__zero_points;

// y (rows, columns) = x, of i8 or u8, less its zero points: one, or one for each column.
void ot__ref_integer_widen(int16_t *y, const void *x, bool is_signed, const ot__zero_points *zero,
                           int64_t rows, int64_t columns);

// y (m, n) = (a - a_zero) * b, sums in 32 bits that wrap. a (m, k) is i8 or u8 and has zero points
// along m, b (k, n) is widened.
typedef struct ot__integer_product {
    int64_t m, n, k;
    const void *a;
    bool a_is_signed;
    ot__zero_points a_zero;
    const int16_t *b;
} ot__integer_product;
void ot__ref_integer_product(int32_t *y, const ot__integer_product *p);

// y = (x + bias) * row_scale * column_scale / y_scale, rounded to even, + y_zero, as i8 or u8.
typedef struct ot__requantization {
    int64_t rows, columns;
    const int32_t *bias; // for each row, or NULL
    const float *row_scale, *column_scale;
    int64_t rows_differ; // row r has scale r % rows_differ; 0: all have the first
    bool columns_differ; // likewise; false: all have the first
    float y_scale;
    bool y_is_signed;
    int y_zero;
} ot__requantization;
void ot__ref_requantize(void *y, const int32_t *x, const ot__requantization *q);

// ---- ref_n_bits.c ----

// A matrix of integers of 2, 4 or 8 bits, with a scale and a zero point for every `block` elements
// of a row; blocks are whole, the matrix has `columns` of their elements.
typedef struct ot__n_bits {
    int64_t rows, columns;
    int bits;
    int64_t block, blocks; // of a row
} ot__n_bits;

// Zero points packed as the elements are, or numbers of the type of the scales; neither: the
// middle.
typedef struct ot__n_bits_data {
    const uint8_t *packed, *packed_zeros;
    const void *zeros;
} ot__n_bits_data;

// y = (q - zero) * scale
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_n_bits_##suffix(T *y, const ot__n_bits_data *d, const T *scales,                  \
                                 const ot__n_bits *m);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

#endif
