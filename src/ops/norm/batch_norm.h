// SPDX-License-Identifier: Apache-2.0
// What the normalisations of images, (N, C, spatial...), share. Private to `ops`.
#ifndef OT_OPS_BATCH_NORM_H
#define OT_OPS_BATCH_NORM_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { OT__BN_X, OT__BN_SCALE, OT__BN_BIAS, OT__BN_MEAN, OT__BN_VAR, OT__BN_Z }; // inputs
enum { OT__BN_Y, OT__BN_RUNNING_MEAN, OT__BN_RUNNING_VAR, OT__BN_SAVED_MEAN, OT__BN_SAVED_SPREAD };

typedef struct ot__batch_norm {
    int64_t n, channels, inner;
    double epsilon, momentum;
    ot__channels layout; // of X in its layout, for the vector kernels
    bool is_training;    // normalise by the batch's statistics
    bool is_internal;    // as ot__batch_norm_is_internal() says
    bool relu;           // Y = max(normalised (+ Z), 0)
    bool is_sync;        // sums are over the batches of all ranks
} ot__batch_norm;

// Input `x` has at least n_axes axes and the inputs first .. last one element a channel; so many
// are they, as far as known. False with the failure.
bool ot__infer_channels(ot_infer *c, int x, int n_axes, int first, int last, int64_t *channels);
extern const ot_attr_spec ot__epsilon_attrs[]; // 1e-5 by default
// Images of one type beside f32.
bool ot__batch_norm_can_simd(const ot_prep *p);
// Entries of vector code.
#define OT__BATCH_NORM_KERNEL(layouts_, prepare_, run_)                                            \
    {                                                                                              \
        .name = "simd", .types = "T: f32 f16 bf16",                                                \
        .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED, .can_run = ot__batch_norm_can_simd,     \
        .layouts = layouts_, .prepare = prepare_, .run = run_                                      \
    }
// State with what follows from input `x`.
ot_status ot__batch_norm_state(ot_prep *p, int x);

// As ONNX Runtime trains: running statistics are updated where they come from, and the batch's are
// saved for the gradient, 1 / sqrt(variance + epsilon) instead of the variance.
bool ot__batch_norm_is_internal(const ot_op_def *op);
bool ot__batch_norm_is_training(const ot_node *node);
bool ot__batch_norm_is_ghost(const ot_run *r); // this rank adds nothing to sums over all

// What x - mean is multiplied with in f32. Everything that makes Y or asks for its sign uses this
// expression of the saved numbers, so that all see the same bits.
static inline float ot__batch_norm_factor(float scale, float inv_std)
{
    return (float)((double)scale * (double)inv_std);
}

// ---- gradients (batch_norm_rule.c) ----

void ot__batch_norm_rule(ot_grad *g);
// `v` (C) so that it broadcasts along axis 1 of x; the sum of `v` (as x) over all axes but 1.
ot_value *ot__emit_channels(ot_grad *g, ot_value *v, const ot_value *x);
ot_value *ot__emit_channel_sum(ot_grad *g, ot_value *v, bool keep_axes);

#endif
