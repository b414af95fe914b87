// SPDX-License-Identifier: Apache-2.0
// Undoing, before training, what exporters did to a model's parameters.
#ifndef ONNXTRAIN_PREPARE_H
#define ONNXTRAIN_PREPARE_H

#include "onnxtrain/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether ot_artifacts_generate() prepares the model first. */
typedef enum ot_prepare {
    OT_PREPARE_TRAINING, ///< as ot_model_prepare_training() does
    OT_PREPARE_NONE,     ///< the model is taken as it is; the log says what would change
} ot_prepare;

typedef struct ot_prepare_options {
    size_t size; ///< sizeof(ot_prepare_options)
    /**
     * Patterns with * and ? over names of tensors that stay as the file shares them: names of the
     * file, or names that they would get. The word "keep" leaves all tensors so.
     */
    const char *const *shared;
    int n_shared;
} ot_prepare_options;
#define OT_PREPARE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(ot_prepare_options), NULL, 0                                                        \
    }

typedef enum ot_finding_kind {
    OT_FINDING_SEPARATED, ///< several parameters were one tensor: each has its own
    OT_FINDING_JOINED,    ///< one parameter was two tensors: it is one
    OT_FINDING_SHARED,    ///< one tensor that several places read stays one
    OT_FINDING_BATCH,     ///< the exporter fixed the batch size: it is open, or what holds it
    OT_FINDING_LOST,      ///< parameters that the exporter computed away
    OT_FINDING_RESTORED,  ///< biases of zeros that the exporter dropped are back
    OT_FINDING_UNUSED, ///< parameters of the framework's module that nothing in the file mentions
} ot_finding_kind;

/** One thing that preparing found. */
typedef struct ot_finding {
    ot_finding_kind kind;
    const char *word; ///< of the kind, for a column of text: "separated"
    const char *name; ///< value of the file that it is about
    const char *text; ///< one line
    int changes;      ///< 1: the model was changed; 0: it is as the file has it
} ot_finding;

/** Findings, in the order they were made; owned by whoever hands them out. */
typedef struct ot_findings ot_findings;
OT_API int ot_findings_count(const ot_findings *findings);
/** NULL out of range. */
OT_API const ot_finding *ot_findings_get(const ot_findings *findings, int index);
OT_API void ot_findings_destroy(ot_findings *findings); ///< NULL is fine

/**
 * The model as its parameters were before the export: parameters that the exporter merged, since
 * their initial values are equal, are tensors of their own again.
 *
 * A batch size that the exporter fixed, which is the number that axis 0 of the first input has,
 * becomes open: in all inputs that have it there, and in the constants of Reshape, Expand and
 * Slice, class tokens and initial states that hold it where the batch comes to. Where more than
 * inputs changes, the model runs once on twice as many random rows, and stays as it is unless it
 * gives what it gave of each half.
 *
 * @param model    stays as it is
 * @param options  NULL for defaults
 * @param out      the caller destroys it
 * @param findings what was changed and what was left; NULL: not wanted; the caller destroys it
 * @return OT_ERR_NOT_FOUND for a pattern that no shared tensor has; what ot_model_load() may say of
 * functions
 */
OT_API ot_status ot_model_prepare_training(const ot_model *model, const ot_prepare_options *options,
                                           ot_model **out, ot_findings **findings);

#ifdef __cplusplus
}
#endif
#endif
