// SPDX-License-Identifier: Apache-2.0
// The loss scale of training in few bits: what the loss is multiplied with for the backward pass,
// so that small gradients do not become 0.
#ifndef ONNXTRAIN_LOSS_SCALER_H
#define ONNXTRAIN_LOSS_SCALER_H

#include "onnxtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where training stands: what schedules and loss scalers decide by. */
typedef struct ot_step_info {
    size_t size;                      ///< sizeof(ot_step_info)
    double initial_lr;                ///< of the optimizer's options
    int all_finite;                   ///< 1 unless the gradients of the last update were not finite
    int64_t optimization_step;        ///< updates applied so far
    int64_t step;                     ///< train steps so far, one a micro-batch
    double learning_rate, loss_scale; ///< of the last train step
    double gradient_norm;             ///< of the last update's mean gradients; NaN: not computed
} ot_step_info;
#define OT_STEP_INFO_INIT                                                                          \
    {                                                                                              \
        sizeof(ot_step_info), 0.0, 1, 0, 0, 0.0, 1.0, 0.0                                          \
    }

/**
 * A loss scale and the rule by which it changes. The caller owns it, and users of the same one
 * share it.
 *
 * The rule: `up_scale_window` updates in a row with finite gradients double the scale, up to
 * max_loss_scale; one with gradients that are not finite halves it, down to min_loss_scale.
 */
typedef struct ot_loss_scaler {
    size_t size; ///< sizeof(ot_loss_scaler)
    double loss_scale;
    int automatic_update; ///< 0: loss_scale stays what it is set to
    int64_t up_scale_window;
    int64_t n_stable; ///< updates with finite gradients since the scale last changed
    double min_loss_scale, max_loss_scale;
    double initial_loss_scale; ///< what ot_loss_scaler_reset() goes back to
    /** A rule instead of the above: changes *loss_scale; non-zero: it failed. NULL: none */
    int (*update)(void *context, const ot_step_info *info, double *loss_scale);
    void *context; ///< of `update`
} ot_loss_scaler;
#define OT_LOSS_SCALER_INIT                                                                        \
    {                                                                                              \
        sizeof(ot_loss_scaler), 65536.0, 1, 2000, 0, 1.0, 16777216.0, 65536.0, NULL, NULL          \
    }

/** Adapt the scale to an update, applied or skipped, of which only `all_finite` is read unless
 * there is a function `update`. Returns the new scale; 0, and the scale stays, when `update` failed
 * or left no finite number above 0. */
OT_API double ot_loss_scaler_update(ot_loss_scaler *scaler, const ot_step_info *info);
/** Back to initial_loss_scale. */
OT_API void ot_loss_scaler_reset(ot_loss_scaler *scaler);

#ifdef __cplusplus
}
#endif
#endif
