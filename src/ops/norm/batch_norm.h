// SPDX-License-Identifier: Apache-2.0
// What BatchNormalization and BatchNormInternal share. Private to `ops`.
#ifndef OT_OPS_BATCH_NORM_H
#define OT_OPS_BATCH_NORM_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { OT__BN_X, OT__BN_SCALE, OT__BN_BIAS, OT__BN_MEAN, OT__BN_VAR, OT__BN_Z }; // inputs
enum { OT__BN_Y, OT__BN_RUNNING_MEAN, OT__BN_RUNNING_VAR, OT__BN_SAVED_MEAN, OT__BN_SAVED_SPREAD };

typedef struct ot__batch_norm {
    int64_t n, channels, inner;
    double epsilon, momentum;
    bool is_training;    // normalise by the batch's statistics
    bool updates_inputs; // the running statistics are updated where they come from
    bool saves_inv_std;  // as OT__BN_SAVED_SPREAD; else the variance
    bool relu;           // Y = max(normalised (+ Z), 0)
    ot__channels layout; // of X in its form, for the vector kernels
} ot__batch_norm;

// X (N, C, ...) and one number a channel in inputs 1 to 4; all outputs but the first have one a
// channel too.
void ot__batch_norm_infer(ot_infer *c);
// State with the extents and epsilon; the rest is the caller's.
ot__batch_norm *ot__batch_norm_prepare(ot_prep *p);
ot_status ot__batch_norm_run(const ot_run *r);
// What follows after Y was made by `mean` and `var`: running and saved statistics.
void ot__batch_norm_finish(const ot_run *r, const void *mean, const void *var);

// What x - mean is multiplied with in f32. Everything that makes Y or asks for its sign uses this
// expression of the saved numbers, so that all see the same bits.
static inline float ot__batch_norm_factor(float scale, float inv_std)
{
    return (float)((double)scale * (double)inv_std);
}

// batch_norm_simd.c: f32 in any form. The same state, completed by ot__batch_norm_prepare_simd().
bool ot__batch_norm_can_simd(const ot_prep *p);
void ot__batch_norm_forms(ot_prep *p);
ot_status ot__batch_norm_prepare_simd(ot_prep *p, ot__batch_norm *norm);
ot_status ot__batch_norm_run_simd(const ot_run *r);

// Gradients by batch statistics; with Y, those of max(normalised (+ Z), 0).
enum {
    OT__BN_GRAD_DY,
    OT__BN_GRAD_X,
    OT__BN_GRAD_SCALE,
    OT__BN_GRAD_MEAN,
    OT__BN_GRAD_INV_STD,
    OT__BN_GRAD_Y,
    OT__BN_GRAD_BIAS, // instead of Y: it is computed again, without Z
};                    // inputs
enum { OT__BN_GRAD_DX, OT__BN_GRAD_DSCALE, OT__BN_GRAD_DB, OT__BN_GRAD_DZ }; // outputs
void ot__batch_norm_grad_infer(ot_infer *c);
bool ot__batch_norm_grad_can_simd(const ot_prep *p);
void ot__batch_norm_grad_forms(ot_prep *p);
ot_status ot__batch_norm_grad_prepare_simd(ot_prep *p);
ot_status ot__batch_norm_grad_run_simd(const ot_run *r);
// With dY in `dy`, which is not always input 0's memory.
ot_status ot__batch_norm_grad_run_ref(const ot_run *r, const void *dy);

// Gradients by the stored statistics, in standard operators.
void ot__batch_norm_stored_grad(ot_grad *g);
// Gradients by batch statistics that the values give, one number a channel.
void ot__batch_norm_batch_grad(ot_grad *g, ot_value *mean, ot_value *inv_std);
// Extents of x around axis 1.
void ot__channel_extents(const ot_shape *x, int64_t *n, int64_t *channels, int64_t *inner);
// `v` (C) so that it broadcasts along axis 1 of x; the sum of `v` (as x) over all axes but 1.
ot_value *ot__emit_channels(ot_grad *g, ot_value *v, const ot_value *x);
ot_value *ot__emit_channel_sum(ot_grad *g, ot_value *v, bool keep_axes);

// Y of BatchNormRelu from the statistics that it saves: the reference, for all types. BatchNormRelu
// makes its Y so too, and what is made again has the same bits.
void ot__batch_norm_relu_saved(const ot_arg *y, const ot_arg *const x_scale_bias[3],
                               const ot_arg *mean, const ot_arg *inv_std);

#endif
