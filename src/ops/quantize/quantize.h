// SPDX-License-Identifier: Apache-2.0
// What QuantizeLinear and DequantizeLinear share. Private to `ops`.
#ifndef OT_OPS_QUANTIZE_H
#define OT_OPS_QUANTIZE_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { OT__Q_X, OT__Q_SCALE, OT__Q_ZERO_POINT };

// Attributes of both: the axis of a scale per channel, and one that is 0 unless given.
#define OT__Q_AXIS                                                                                 \
    {                                                                                              \
        .name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1             \
    }
#define OT__Q_ZERO(text)                                                                           \
    {                                                                                              \
        .name = text, .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT                       \
    }

// Whether scale and zero point fit x.
bool ot__quantize_check(ot_infer *c);
bool ot__quantize_is_single(const ot_shape *scale); // one scale for all elements
ot_status ot__quantize_prepare(ot_prep *p);
// The run's tensors; the state is an ot__quantization.
ot__quantized_data ot__quantize_data(const ot_run *r);

// quantize_train.c: a DequantizeLinear of what a QuantizeLinear gives is FakeQuant of its input.
void ot__dequantize_train(ot_grad *g);

#endif
