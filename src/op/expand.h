// SPDX-License-Identifier: Apache-2.0
// What expansions into ONNX's own operators share.
#ifndef OT_OP_EXPAND_H
#define OT_OP_EXPAND_H

#include "op/grad.h"

ot_value *ot__emit_times(ot_grad *g, ot_value *v, double number); // v itself for 1
ot_value *ot__emit_transpose(ot_grad *g, ot_value *v, const int64_t *perm, int n);
ot_value *ot__emit_sum(ot_grad *g, ot_value *v, const int64_t *axes, int n, bool keep_axes);
// A reduction that keeps the axes; its operator has had them as an input since opset 18.
ot_value *ot__emit_reduce(ot_grad *g, const char *op, ot_value *v, const int64_t *axes, int n);
ot_value *ot__emit_reshape(ot_grad *g, ot_value *v, const int64_t *dims, int n);
ot_value *ot__emit_concat(ot_grad *g, ot_value *const *parts, int n, int64_t axis);
// Elements first .. last - 1 of a list, or of v's shape (a constant where they are known).
ot_value *ot__emit_part(ot_grad *g, ot_value *list, int64_t first, int64_t last);
ot_value *ot__emit_extents(ot_grad *g, ot_value *v, int first, int last);
ot_value *ot__emit_at(ot_grad *g, ot_value *list, int64_t index); // a scalar
ot_value *ot__emit_count_up(ot_grad *g, ot_value *limit);         // 0, 1, ... below a scalar
// Zeros of an extent list, of the type of `like`.
ot_value *ot__emit_zeros(ot_grad *g, ot_value *shape, const ot_value *like);
// `op` (ScatterND or ScatterElements) of data with updates added.
ot_value *ot__emit_scatter_add(ot_grad *g, const char *op, int64_t axis, ot_value *data,
                               ot_value *indices, ot_value *updates);
// Zeros of an extent list with `updates` added at positions that count the last axis fastest.
ot_value *ot__emit_scatter_flat(ot_grad *g, ot_value *shape, ot_value *positions,
                                ot_value *updates);

#endif
