// SPDX-License-Identifier: Apache-2.0
// Gradients of any value of a model with respect to its inputs, parameters or other values.
#ifndef ONNXTRAIN_GRADIENTS_H
#define ONNXTRAIN_GRADIENTS_H

#include "onnxtrain/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A model and its gradients, ready to run. One thread at a time. */
typedef struct ot_gradients ot_gradients;

/** The gradient of the value itself, from which the others follow. */
typedef enum ot_gradient_seed {
    OT_SEED_AUTO,  ///< ones for a value of one element, an input for any other
    OT_SEED_INPUT, ///< an input "<of>_grad" with the value's type and shape, after the model's own:
                   ///< the gradients are the product of this vector with the Jacobian
    OT_SEED_ONES,  ///< ones: the gradients of the sum of its elements
} ot_gradient_seed;

typedef struct ot_gradients_options {
    size_t size; ///< sizeof(ot_gradients_options)
    ot_gradient_seed seed;
    int keep_operators; ///< 1: ot_gradients_model() keeps operators that only training runtimes
                        ///< have
    const ot_session_options *session; ///< for running; NULL for defaults; borrowed for the call
} ot_gradients_options;
#define OT_GRADIENTS_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(ot_gradients_options), OT_SEED_AUTO, 0, NULL                                        \
    }

/** Metadata of ot_gradients_model(): its operators that ONNX does not have, separated by ", ".
 * Absent when there are none, so that every runtime for ONNX can run it. */
#define OT_METADATA_NONSTANDARD "onnxtrain.nonstandard_operators"

/**
 * Make the gradients of value `of` with respect to the values `wrt`, which may be inputs,
 * initializers or computed ones, of type f32 or f64. The model is differentiated as an inference
 * model: BatchNormalization uses its stored statistics, Dropout drops nothing. Nothing else is
 * changed: merged parameters, which ot_model_prepare_training() separates, stay merged.
 *
 * @param model   borrowed for the call
 * @param options NULL for defaults
 * @param out     the caller destroys it; NULL on failure
 * @return OT_ERR_NOT_FOUND for names that the model lacks; OT_ERR_INVALID for values of a type
 * without gradient, or without a path to `of`; OT_ERR_UNSUPPORTED naming the operators that cannot
 * be differentiated
 */
OT_API ot_status ot_gradients_create(const ot_model *model, const char *of, const char *const *wrt,
                                     int n_wrt, const ot_gradients_options *options,
                                     ot_gradients **out);
OT_API void ot_gradients_destroy(ot_gradients *gradients); ///< NULL is fine

/**
 * The model that computes them, to be saved: the inputs that `of` depends on, in their order, and
 * the seed if it is an input; outputs `of`, then "<name>_grad" for each name of `wrt` (with a
 * number appended where the model has that name already, as a model of gradients does).
 * Written in ONNX's own operators where they can express it, whereas running uses those that are
 * fastest here.
 *
 * @return owned by `gradients`
 */
OT_API const ot_model *ot_gradients_model(const ot_gradients *gradients);

/**
 * Compute the value and its gradients.
 *
 * @param inputs  borrowed for the call; order of the inputs of ot_gradients_model()
 * @param outputs receive new tensors, which the caller destroys: `of`, then the gradients in the
 * order of `wrt`; all NULL on failure. n_outputs may be less than there are.
 * @return OT_ERR_INVALID when an input has the wrong type or shape or bad values
 */
OT_API ot_status ot_gradients_run(ot_gradients *gradients, const ot_tensor *const *inputs,
                                  int n_inputs, ot_tensor **outputs, int n_outputs);

#ifdef __cplusplus
}
#endif
#endif
