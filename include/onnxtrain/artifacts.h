// SPDX-License-Identifier: Apache-2.0
// From a forward model to what training needs: training, eval and optimizer model and a checkpoint.
#ifndef ONNXTRAIN_ARTIFACTS_H
#define ONNXTRAIN_ARTIFACTS_H

#include "onnxtrain/checkpoint.h"
#include "onnxtrain/model.h"
#include "onnxtrain/optimizer.h"
#include "onnxtrain/prepare.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ot_loss {
    OT_LOSS_NONE,            ///< pass-through: the first output is the loss
    OT_LOSS_CROSS_ENTROPY,   ///< softmax cross entropy of scores [N, C, ...] and labels [N, ...]
    OT_LOSS_MSE,             ///< mean of (x - target)^2
    OT_LOSS_L1,              ///< mean of |x - target|
    OT_LOSS_BCE_WITH_LOGITS, ///< binary cross entropy of logits, stable for large |x|
    OT_LOSS_CUSTOM, ///< a model: an input with the name of a forward output takes it, the others
                    ///< become targets
} ot_loss;

typedef enum ot_reduction { OT_REDUCTION_MEAN, OT_REDUCTION_SUM, OT_REDUCTION_NONE } ot_reduction;

/** One term of the loss; several terms are summed with their factors. */
typedef struct ot_loss_options {
    size_t size; ///< sizeof(ot_loss_options)
    ot_loss loss;
    double factor;      ///< of this term in the sum (1)
    const char *input;  ///< forward value the loss takes; NULL: the first output
    const char *target; ///< name of the target input; NULL: "labels" (cross entropy) or "target"
    ot_reduction reduction;
    const ot_tensor
        *weight; ///< class weights [C] (cross entropy) or element weights (BCE); NULL: none
    const ot_tensor *pos_weight; ///< BCE: weight of positive targets; NULL: none
    int has_ignore_index;        ///< 0: no label is ignored
    int64_t ignore_index;
    const ot_model *custom; ///< OT_LOSS_CUSTOM: borrowed
    int class_axis; ///< cross entropy: axis of the scores that has the classes: 1, or -1: the last
} ot_loss_options;
#define OT_LOSS_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(ot_loss_options), OT_LOSS_CROSS_ENTROPY, 1.0, NULL, NULL, OT_REDUCTION_MEAN, NULL,  \
            NULL, 0, 0, NULL, 1                                                                    \
    }

typedef enum ot_batch_norm {
    OT_BATCH_NORM_AUTO, ///< batch statistics where scale or bias is trained or neither comes from a
                        ///< parameter; stored ones where both are frozen
    OT_BATCH_NORM_BATCH,  ///< always batch statistics
    OT_BATCH_NORM_STORED, ///< always stored statistics
} ot_batch_norm;

typedef struct ot_artifacts_options {
    size_t size;                   ///< sizeof(ot_artifacts_options)
    const ot_loss_options *losses; ///< NULL: pass-through; all of one size
    int n_losses;
    const ot_optimizer_options *optimizer; ///< NULL: its defaults
    /**
     * Patterns with * and ? over initializer names. trainable NULL: every float initializer that
     * reaches the loss through a differentiable input, except scalars, exponents of Pow, bounds of
     * Clip and, unless train_buffers, masks of Softmax and what the file calls buffers. An explicit
     * name that reaches no loss is an error. A whole name may also be that of an Identity's output:
     * a copy that an exporter left of an initializer, which becomes a parameter of its own; in
     * `frozen` too.
     */
    const char *const *trainable;
    int n_trainable;
    const char *const *frozen; ///< kept as parameters without gradient
    int n_frozen;
    const char *const *additional_outputs; ///< outputs of training and eval model after the loss
    int n_additional_outputs;
    ot_batch_norm batch_norm;
    uint64_t seed;           ///< of initial values drawn by RandomNormal, RandomUniform and `init`
    const char *const *init; ///< "pattern=kind": kaiming_uniform kaiming_normal xavier_uniform
                             ///< xavier_normal zeros ones
    int n_init;
    int ignore_unknown_frozen; ///< 1: frozen names that the model lacks are ignored, as in lists
                               ///< made by a framework; 0: they are errors
    int ort_format;            ///< 1: ot_artifacts_save() also writes the models as .ort files (0)
    int train_buffers;         ///< 1: buffers of the framework train like any other initializer, as
                               ///< in ONNX Runtime (0)
    int input_gradients; ///< 1: a trainable name may be that of a float input, targets included:
                         ///< its gradient is summed like a parameter's, and nothing updates it (0)
    const char *const *shared; ///< as ot_prepare_options.shared
    int n_shared;
    ot_prepare prepare;  ///< OT_PREPARE_TRAINING
    int names_of_module; ///< 1: trainable lists the parameters of the framework's module, frozen
                         ///< its other parameters and its buffers. Names that the model lacks or
                         ///< that reach no loss are ignored, unless the exporter put another tensor
                         ///< in their place (0)
    int unrecorded;      ///< 1: the training model's metadata do not record the loss, as with ONNX
                         ///< Runtime (0)
    int train_scalars;   ///< 1: scalars without dimensions that reach the loss train too, not only
                         ///< those that the file calls parameters (0)
    int loss_scale;      ///< 1: the training model has an input f32 [1] that the gradients are
                         ///< multiplied with, see ot_session_set_loss_scale() (0)
    int must_reach_loss; ///< 1: float initializers that something reads and from which no path
                         ///< leads to the loss are an error that names them all, unless they are
                         ///< frozen; the log says which others do not train (0)
    /** 1: the training model is written in ONNX's own operators where they can say it, gradients
     * included; a note says which others it has, and so does its metadata OT_METADATA_NONSTANDARD
     * (0). As wide as that lies behind what structs of earlier headers have. */
    int64_t standard_ops;
} ot_artifacts_options;
#define OT_ARTIFACTS_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(ot_artifacts_options), NULL, 0, NULL, NULL, 0, NULL, 0, NULL, 0,                    \
            OT_BATCH_NORM_AUTO, 0, NULL, 0, 0, 0, 0, 0, NULL, 0, OT_PREPARE_TRAINING, 0, 0, 0, 0,  \
            0, 0                                                                                   \
    }

/** The kinds of initial values that ot_artifacts_options.init may name, from 0; NULL after the
 * last. Static. */
OT_API const char *ot_init_kind_name(int index);

/** The four artifacts in memory. */
typedef struct ot_artifacts ot_artifacts;

/**
 * Build the artifacts of a forward model, which stays as it is.
 *
 * Nodes of unknown operators, such as those of custom operator libraries, are passed through where
 * no gradient passes them. The log names them; the files train in a runtime that has them.
 *
 * If no parameter trains, an optimizer is an error. Without an optimizer such artifacts are made,
 * with a warning in the log.
 *
 * @param out the caller destroys it
 * @return OT_ERR_UNSUPPORTED naming every operator without gradient on the way to the loss;
 * OT_ERR_INVALID naming parameters that do not reach the loss, or unknown names
 */
OT_API ot_status ot_artifacts_generate(const ot_model *model, const ot_artifacts_options *options,
                                       ot_artifacts **out);

/** Write <directory>/<prefix>training_model.onnx, eval_model.onnx, optimizer_model.onnx and
 * checkpoint; directories are made. With ort_format, training_model.ort, eval_model.ort and
 * optimizer_model.ort stand beside them, and OT_ERR_UNSUPPORTED names an operator for which ONNX
 * Runtime has no kernel. */
OT_API ot_status ot_artifacts_save(const ot_artifacts *artifacts, const char *directory,
                                   const char *prefix);

/** Write <directory>/<prefix>nominal_checkpoint: names and element types of the parameters, without
 * values. */
OT_API ot_status ot_artifacts_save_nominal(const ot_artifacts *artifacts, const char *directory,
                                           const char *prefix);

/** Read what ot_artifacts_save() or ONNX Runtime's generate_artifacts wrote; eval and optimizer
 * model may be absent. Each model is its .onnx file or, where there is none, its .ort file. */
OT_API ot_status ot_artifacts_load(const char *directory, const char *prefix, ot_artifacts **out);

/** Owned by the artifacts; NULL when absent. */
OT_API const ot_model *ot_artifacts_training_model(const ot_artifacts *artifacts);
OT_API const ot_model *ot_artifacts_eval_model(const ot_artifacts *artifacts);
OT_API const ot_model *ot_artifacts_optimizer_model(const ot_artifacts *artifacts);
/** Put a copy of `optimizer`, which a user may have built, in the place of the optimizer model;
 * NULL: there is none. Sessions check it. */
OT_API ot_status ot_artifacts_set_optimizer_model(ot_artifacts *artifacts,
                                                  const ot_model *optimizer);
OT_API ot_checkpoint *ot_artifacts_checkpoint(ot_artifacts *artifacts);
/** Give the checkpoint to the caller, who destroys it; the artifacts have none afterwards. A
 * program that trains a large model from another checkpoint frees memory with it. */
OT_API ot_checkpoint *ot_artifacts_take_checkpoint(ot_artifacts *artifacts);
/** What a user should know although the model trains: lines that ot_artifacts_generate() made, and
 * that the log has too. Artifacts from files have none. */
OT_API int ot_artifacts_note_count(const ot_artifacts *artifacts);
/** Owned by the artifacts; NULL out of range.
 * @param level may be NULL; receives OT_LOG_WARNING for what is most likely wrong, such as scores
 * that went through Softmax before the loss does, else OT_LOG_INFO */
OT_API const char *ot_artifacts_note(const ot_artifacts *artifacts, int index, ot_log_level *level);
OT_API void ot_artifacts_destroy(ot_artifacts *artifacts); ///< NULL is fine

/** Why a parameter trains or does not; of `onnxtrain check`. */
typedef struct ot_parameter_report {
    const char *name; ///< owned by the report
    ot_dtype dtype;
    ot_shape shape;
    int trainable;
    int frozen;  ///< 1: kept in the checkpoint without gradient; neither: a constant of the models
    int blocked; ///< 1: would train, but an operator without support or gradient is in the way
    int initializer;    ///< 0: the value of a Constant node, listed since it never trains
    int folded;         ///< 1: by its name, an exporter computed it from parameters that are gone
    const char *reason; ///< "reaches the loss", "frozen by pattern 'fc1*'", "only through the
                        ///< indices of Gather 'g'", ...
} ot_parameter_report;

typedef struct ot_report ot_report;

/** Whether and what of a model can be trained, without building it. The caller destroys the report.
 */
OT_API ot_status ot_report_create(const ot_model *model, const ot_artifacts_options *options,
                                  ot_report **out);
OT_API int ot_report_trainable(const ot_report *report); ///< 1: artifacts can be built
OT_API int ot_report_parameter_count(const ot_report *report);
OT_API const ot_parameter_report *ot_report_parameter(const ot_report *report, int index);
OT_API int ot_report_problem_count(const ot_report *report); ///< what is in the way
OT_API const char *ot_report_problem(const ot_report *report, int index);
OT_API int ot_report_note_count(const ot_report *report); ///< what looks wrong, but trains
OT_API const char *ot_report_note(const ot_report *report, int index);
OT_API void ot_report_destroy(ot_report *report); ///< NULL is fine

#ifdef __cplusplus
}
#endif
#endif
