// SPDX-License-Identifier: Apache-2.0
// What expansions into ONNX's own operators share. Private to `ops`.
#ifndef OT_OPS_EXPAND_H
#define OT_OPS_EXPAND_H

#include "ops/grad.h"

ot_value *ot__emit_times(ot_grad *g, ot_value *v, double number); // v itself for 1
ot_value *ot__emit_transpose(ot_grad *g, ot_value *v, const int64_t *perm, int n);
ot_value *ot__emit_sum(ot_grad *g, ot_value *v, const int64_t *axes, int n, bool keep_axes);
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

// The gradient of X through a convolution by W, from dY: a transposed convolution (expand_conv.c).
// The lists hold an entry a spatial axis; `extents` are X's spatial ones, for where shape `x` has
// no numbers.
typedef struct ot__spread {
    int n_axes;
    const int64_t *kernel, *stride, *dilation, *pad, *pad_end;
    int64_t groups;
} ot__spread;
ot_value *ot__emit_spread(ot_grad *g, const ot__spread *s, ot_value *dy, ot_value *w,
                          const ot_shape *x, ot_value *extents);

// Slopes (expand_gelu.c): of Gelu and of its approximation by tanh at x.
ot_value *ot__emit_gelu_slope(ot_grad *g, ot_value *x);
ot_value *ot__emit_fast_gelu_slope(ot_grad *g, ot_value *x);

// Expansions that stand apart from their records.
void ot__conv_grad_expand(ot_grad *g);
void ot__gather_grad_expand(ot_grad *g);
void ot__gather_elements_grad_expand(ot_grad *g);
void ot__gather_nd_grad_expand(ot_grad *g);
void ot__slice_grad_expand(ot_grad *g);
void ot__max_pool_grad_expand(ot_grad *g);
void ot__average_pool_grad_expand(ot_grad *g);
void ot__sce_grad_expand(ot_grad *g); // of log_prob
void ot__nll_grad_expand(ot_grad *g);
void ot__layer_norm_grad_expand(ot_grad *g);

#endif
