// SPDX-License-Identifier: Apache-2.0
// What the operators on signals share. Private to `ops`.
#ifndef OT_OPS_SIGNAL_H
#define OT_OPS_SIGNAL_H

#include "op/expand.h"
#include "ops/move/move.h"

#define OT__NUMBERS "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64"

// The gradient of DFT in ONNX's operators (expand_dft.c).
void ot__dft_grad_expand(ot_grad *g);
// DFT of x in the form of the model's opset; length NULL: that of the axis.
ot_value *ot__emit_dft(ot_grad *g, ot_value *x, ot_value *length, int64_t axis, bool is_inverse,
                       bool is_onesided);
// Elements first .. last - 1 along an axis.
ot_value *ot__emit_slice(ot_grad *g, ot_value *x, int64_t axis, int64_t first, int64_t last);

// A size that scalar input i, an integer, states; one that is not known is no number. False: it is
// not one element, or outside least .. most.
bool ot__infer_size(ot_infer *c, int i, const char *name, int64_t least, int64_t most,
                    int64_t *size);

#endif
