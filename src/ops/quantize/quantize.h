// SPDX-License-Identifier: Apache-2.0
// What QuantizeLinear and DequantizeLinear share. Private to `ops`.
#ifndef OT_OPS_QUANTIZE_H
#define OT_OPS_QUANTIZE_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { OT__Q_X, OT__Q_SCALE, OT__Q_ZERO_POINT };

bool ot__quantize_is_single(const ot_shape *scale); // one scale for all elements

// quantize_train.c: a DequantizeLinear of what a QuantizeLinear gives is FakeQuant of its input.
void ot__dequantize_train(ot_grad *g);

#endif
