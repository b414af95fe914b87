// SPDX-License-Identifier: Apache-2.0
// Running any model by hand, training and optimizer graphs included.
#ifndef ONNXTRAIN_RUNNER_H
#define ONNXTRAIN_RUNNER_H

#include "onnxtrain/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Runs any model, training and optimizer graphs included. One thread at a time, else
 * OT_ERR_STATE. */
typedef struct ot_runner ot_runner;

/** What an input gets: one tensor, or those of a sequence. */
typedef struct ot_feed {
    const ot_tensor *const *tensors;
    int count;
} ot_feed;

/** The model is borrowed for the call. */
OT_API ot_status ot_runner_create(const ot_model *model, const ot_session_options *options,
                                  ot_runner **out);
OT_API void ot_runner_destroy(ot_runner *runner); ///< NULL is fine

/**
 * Run the model; shapes seen before need no new plan.
 *
 * @param feeds   borrowed for the call; in the order of the inputs that have no initializer. What
 * the graph changes in place (gradient buffers, running statistics, an optimizer's params) is
 * changed there
 * @param which   positions of the wanted outputs; NULL: the first n_outputs
 * @param outputs new tensors, which the caller destroys; all NULL on failure
 * @return OT_ERR_UNSUPPORTED for a sequence among the wanted outputs
 */
OT_API ot_status ot_runner_run(ot_runner *runner, const ot_feed *feeds, int n_feeds,
                               const int *which, ot_tensor **outputs, int n_outputs);

/** Run any model once, over tensors: all inputs in, new outputs out, which the caller destroys. */
OT_API ot_status ot_model_run(const ot_model *model, const ot_session_options *options,
                              const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                              int n_outputs);

#ifdef __cplusplus
}
#endif
#endif
