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

// Any numeric element types; 8-bit floats have no zero point. zero_point NULL: 0.
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

#endif
