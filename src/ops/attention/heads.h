// SPDX-License-Identifier: Apache-2.0
// What operators of attention are composed of. Heads are an axis of their own, (batch, heads,
// positions, elements), or lie side by side, (batch, positions, heads * elements). Private to
// `ops`.
#ifndef OT_OPS_ATTENTION_HEADS_H
#define OT_OPS_ATTENTION_HEADS_H

#include "op/expand.h"

ot_value *ot__emit_scalar(ot_grad *g, int64_t number);
ot_value *ot__emit_size(ot_grad *g, ot_value *v, int axis); // of an axis, as a scalar
// v with n axes of size 1 from axis `first` on.
ot_value *ot__emit_axes(ot_grad *g, ot_value *v, int64_t first, int n);
ot_value *ot__emit_swapped(ot_grad *g, ot_value *v); // axes 1 and 2 of four exchanged

// From side by side to an axis of their own, and back.
ot_value *ot__emit_heads(ot_grad *g, ot_value *v, int64_t heads);
ot_value *ot__emit_joined_heads(ot_grad *g, ot_value *v);
// v with each head of `heads` as often as heads of queries, of which there are q_heads, read it.
ot_value *ot__emit_repeated_heads(ot_grad *g, ot_value *v, int64_t heads, int64_t q_heads);
// scale * Q * K^T; NAN: by the root of the size of a head.
ot_value *ot__emit_scores(ot_grad *g, ot_value *q, ot_value *k, double scale);
// cap * tanh(scores / cap); the scores themselves unless cap is above 0.
ot_value *ot__emit_softcap(ot_grad *g, ot_value *scores, double cap);

// op_rotary_embedding.c: x, heads of their own axis, with its first pairs rotated by angles
// (batch or 1, positions, pairs).
ot_value *ot__emit_rotated_heads(ot_grad *g, ot_value *x, ot_value *cosines, ot_value *sines,
                                 bool is_interleaved);

#endif
