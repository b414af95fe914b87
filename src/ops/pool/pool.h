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
// State (ot__pool) for the pool from x to y.
ot_status ot__pool_prepare(ot_prep *p, const ot_arg *x, const ot_arg *y);

// The same with the channels of x, for f32 kernels that take any form (state ot__any_pool), and
// whether those can run it.
typedef struct ot__any_pool {
    ot__pool pool;
    ot__channels channels;
} ot__any_pool;
// Where maxima are, in an argument of type i64, i32 or u8, or NULL.
ot__maxima ot__pool_maxima(const ot_arg *at);
bool ot__pool_has_any_form(const ot_arg *x, const ot_arg *y);
ot_status ot__any_pool_prepare(ot_prep *p, const ot_arg *x, const ot_arg *y);

// Pools that only compare, of types other than f32 and f64: on f32 copies, which hold every element
// of those types. The scratch of both copies, and the run.
void ot__pool_scratch_narrow(ot_prep *p);
typedef void (*ot__narrow_pool)(const ot_run *r, float *y, const float *x);
void ot__pool_run_narrow(const ot_run *r, ot__narrow_pool pool);

// Shape of a pool's input from that of its output y: attribute `__input_extents`, or what the
// window proves, else unknown extents.
void ot__pool_infer_input(ot_infer *c, const ot_shape *y, ot_shape *x);
// Write that attribute, for x with static extents. Names that start so are left to tools by ONNX.
void ot__pool_emit_extents(ot_grad *g, ot_node *node, const ot_value *x);
ot_status ot__average_pool_grad_run(const ot_run *r); // out 0 from dY in input 0

// MaxPool and its gradient on any form; also with maxima in their short forms.
bool ot__max_pool_can_simd(const ot_prep *p);
void ot__max_pool_forms(ot_prep *p);
ot_status ot__max_pool_prepare_simd(ot_prep *p);
ot_status ot__max_pool_run_simd(const ot_run *r);
bool ot__max_pool_grad_can_simd(const ot_prep *p);
void ot__max_pool_grad_forms(ot_prep *p);
ot_status ot__max_pool_grad_prepare_simd(ot_prep *p);
// False when a maximum lies outside of its plane.
bool ot__max_pool_grad_simd(const ot_run *r);
// dY and where the maxima are have one shape: that of X, its type dY's.
void ot__max_pool_grad_infer(ot_infer *c);

// One element a plane, from all elements of it: the global pools.
void ot__global_pool_infer(ot_infer *c);
bool ot__spatial_is_static(const ot_value *x);
int64_t ot__plane_elements(const ot_shape *x); // behind the first two axes
// `n` elements a plane as a scalar of x's type, and the spatial axes as a constant.
ot_value *ot__emit_plane_elements(ot_grad *g, ot_value *x, ot_value *y);
ot_value *ot__emit_spatial_axes(ot_grad *g, const ot_value *x);

extern const ot_attr_spec ot__pool_attrs[];         // of every pool: superset of all versions
extern const ot_port ot__pool_in[], ot__pool_out[]; // X; Y

// ---- expansions (expand_pool.c) ----

void ot__max_pool_grad_expand(ot_grad *g);
void ot__average_pool_grad_expand(ot_grad *g);

#endif
