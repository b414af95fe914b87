// SPDX-License-Identifier: Apache-2.0
// What products and convolutions of integers share: scales and zero points. Private to `ops`.
#ifndef OT_OPS_QUANTIZE_INTEGER_H
#define OT_OPS_QUANTIZE_INTEGER_H

#include "kernels/kernels.h"
#include "op/op.h"

// Zero points that a run has as input i, which may be absent.
ot__zero_points ot__zero_points_of(const ot_run *r, int i);
// Scale or zero point number 0 of input i.
float ot__quantized_scale(const ot_run *r, int i);
int ot__quantized_zero(const ot_run *r, int i); // 0 where it is absent
// The scales of input i as f32; returns how many.
int64_t ot__quantized_scales(const ot_run *r, int i, float *to);
// A place for `count` elements of `size` bytes in a scratch that ends at *end so far.
size_t ot__scratch_place(size_t *end, int64_t count, size_t size);
bool ot__is_single_shape(const ot_shape *shape); // one element
// Whether input i, if it is given, has one element.
bool ot__infer_single(ot_infer *c, int i);

#endif
