// SPDX-License-Identifier: Apache-2.0
// Learning rates over the steps of training.
#ifndef ONNXTRAIN_SCHEDULE_H
#define ONNXTRAIN_SCHEDULE_H

#include "onnxtrain/loss_scaler.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the learning rate does after the steps of the warm-up, over which it rises from 0. */
typedef enum ot_schedule_kind {
    OT_SCHEDULE_CONSTANT,    ///< 1
    OT_SCHEDULE_LINEAR,      ///< down to end_factor at total_steps
    OT_SCHEDULE_COSINE,      ///< half a cosine down to end_factor, or `cycles` of it
    OT_SCHEDULE_STEP,        ///< gamma every step_size steps
    OT_SCHEDULE_EXPONENTIAL, ///< gamma every step
    OT_SCHEDULE_POLYNOMIAL,  ///< (1 - progress)^power down to end_factor
} ot_schedule_kind;

typedef struct ot_schedule {
    size_t size; ///< sizeof(ot_schedule)
    ot_schedule_kind kind;
    double initial_lr;
    double warmup_steps; ///< need not be whole
    int64_t total_steps, step_size;
    double gamma, power, end_factor;
    double cycles; ///< of the cosine until total_steps, and on after them; 0: half a one, at whose
                   ///< end the rate stays
} ot_schedule;
#define OT_SCHEDULE_INIT                                                                           \
    {                                                                                              \
        sizeof(ot_schedule), OT_SCHEDULE_CONSTANT, 1e-3, 0.0, 0, 1, 0.1, 1.0, 0.0, 0.0             \
    }

/** The learning rate after `step` finished optimizer steps; 0 for a schedule that
 * ot_session_set_schedule() refuses. Pure. */
OT_API double ot_schedule_value(const ot_schedule *schedule, int64_t step);

/** A schedule of one's own: fills in the rates of the next update, one for all parameters or one
 * for each group. Returns non-zero when it failed. */
typedef int (*ot_schedule_function)(void *context, const ot_step_info *info, double *lr, int n_lr);

#ifdef __cplusplus
}
#endif
#endif
