// SPDX-License-Identifier: Apache-2.0
// What the pools and their gradients share. Private to `ops`.
#ifndef OT_OPS_POOL_H
#define OT_OPS_POOL_H

#include "ops/conv/window.h"

// The window of a pool with input of shape x, whose extents may be symbolic; false with the failure
// in `c` (NULL where inference has seen that it fits).
bool ot__pool_read(ot_infer *c, const ot_node *node, const ot_shape *x, ot__geometry *g);
// The shape of a pool's output; false with the failure when it has none.
bool ot__pool_infer(ot_infer *c, ot_shape *y);
// State of the pool of input 0, or of the gradient that goes from input 0 to output 0.
typedef struct ot__pool_state {
    ot__pool pool;
    ot__channels channels; // of the pool's input, in any layout
} ot__pool_state;
ot_status ot__pool_prepare(ot_prep *p);
ot_status ot__pool_grad_prepare(ot_prep *p);

// Pools that only compare, of types other than f32 and f64: `run` on f32 copies of input and output
// 0, which hold every element of those types. The scratch is for both copies.
void ot__pool_scratch_narrow(ot_prep *p);
ot_status ot__pool_run_narrow(const ot_run *r, ot_status (*run)(const ot_run *r));

// Shape of a pool's input from that of its output y: attribute `__input_extents`, or what the
// window proves, else unknown extents.
void ot__pool_infer_input(ot_infer *c, const ot_shape *y, ot_shape *x);
// Write that attribute, for x with static extents. Names that start so are left to tools by ONNX.
void ot__pool_emit_extents(ot_grad *g, ot_node *node, const ot_value *x);
// A window of so many channels with the same weight everywhere, for convolutions.
ot_value *ot__pool_emit_window(ot_grad *g, const ot__geometry *window, int64_t channels,
                               double weight, ot_dtype dtype);

bool ot__spatial_is_static(const ot_value *x);
int64_t ot__plane_elements(const ot_shape *x); // behind the first two axes
// `n` elements a plane as a scalar of x's type, and the spatial axes as a constant.
ot_value *ot__emit_plane_elements(ot_grad *g, ot_value *x, ot_value *y);
ot_value *ot__emit_spatial_axes(ot_grad *g, const ot_value *x);

extern const ot_attr_spec ot__pool_attrs[]; // of every pool: superset of all versions

// ---- expansions (expand_pool.c) ----

void ot__max_pool_grad_expand(ot_grad *g);
void ot__average_pool_grad_expand(ot_grad *g);
void ot__lp_pool_grad_expand(ot_grad *g);

#endif
