// SPDX-License-Identifier: Apache-2.0
// Training: train, eval and optimizer steps over artifacts; learning rates; parameters; export for
// inference.
#ifndef ONNXTRAIN_SESSION_H
#define ONNXTRAIN_SESSION_H

#include "onnxtrain/artifacts.h"
#include "onnxtrain/checkpoint.h"
#include "onnxtrain/parallel.h"
#include "onnxtrain/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A training run over one checkpoint. One thread at a time uses it and its checkpoint: a call from
 * a second one while another is inside returns OT_ERR_STATE. */
typedef struct ot_session ot_session;

/** What can be made again for the backward pass: less memory, more time, the same bits. Where a
 * model has no such place, that is logged once. */
typedef enum ot_recompute {
    OT_RECOMPUTE_ATTN_DROPOUT = 1, ///< a Dropout between a Softmax and a MatMul
    OT_RECOMPUTE_GELU = 2,         ///< a Gelu before a MatMul, also one written as Erf or Tanh
    OT_RECOMPUTE_LAYER = 4,        ///< layers of a transformer, by its norms or its attention
    OT_RECOMPUTE_ALL = 7,
} ot_recompute;

/** In which element type a step computes. */
typedef enum ot_precision { OT_PRECISION_F32, OT_PRECISION_BF16, OT_PRECISION_F16 } ot_precision;

typedef struct ot_session_options {
    size_t size;           ///< sizeof(ot_session_options)
    int n_threads;         ///< 0: all processors
    int reproducible;      ///< 1: the same bits for any number of threads
    size_t memory_max;     ///< bytes for parameters, gradients, moments, activations and sums over
                           ///< ranks, which lifts the default of ot_set_memory_max(); 0: what
                           ///< that leaves; or OT_MEMORY_UNLIMITED
    int reference_kernels; ///< 1: only reference kernels, as OT_KERNELS=ref
    unsigned recompute;    ///< what of the forward pass is made again for the backward pass instead
                           ///< of kept: ot_recompute, joined by |
    int recompute_layers;  ///< OT_RECOMPUTE_LAYER: the first so many layers; 0: all but the last
    /** bf16 or f16: activations have that type, while parameters, their gradients, the optimizer's
     * state, statistics and losses stay f32; what is given and handed out has the types that the
     * model declares. For models of f32: OT_ERR_UNSUPPORTED where parameters are f64. */
    ot_precision precision;
    const ot_parallel_options *parallel; ///< NULL: one process; else several, and functions that
                                         ///< say "collective" are called by all of them
} ot_session_options;
#define OT_SESSION_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(ot_session_options), 0, 0, 0, 0, 0, 0, OT_PRECISION_F32, NULL                       \
    }

/**
 * Make a session. Parameters are matched with the models' inputs by name; types, shapes and
 * gradient buffers are checked.
 *
 * @param training,eval,optimizer borrowed for the call only; eval and optimizer may be NULL
 * @param checkpoint borrowed until the session is destroyed, and kept by it until then when it is
 * destroyed before; used by one session at a time (else OT_ERR_STATE)
 * @param options NULL for defaults
 * @return OT_ERR_INVALID naming the input or parameter that does not fit, or a gradient buffer that
 * is missing; OT_ERR_UNSUPPORTED naming operators
 */
OT_API ot_status ot_session_create(const ot_model *training, const ot_model *eval,
                                   const ot_model *optimizer, ot_checkpoint *checkpoint,
                                   const ot_session_options *options, ot_session **out);

/** As ot_session_create() over the models and the checkpoint of `artifacts`, which may be destroyed
 * before the session. */
OT_API ot_status ot_session_create_from_artifacts(ot_artifacts *artifacts,
                                                  const ot_session_options *options,
                                                  ot_session **out);
/** As ot_session_create() over model files: .onnx, .ort or .onnxtxt. `eval` and `optimizer` may be
 * NULL. */
OT_API ot_status ot_session_load(const char *training, const char *eval, const char *optimizer,
                                 ot_checkpoint *checkpoint, const ot_session_options *options,
                                 ot_session **out);
/** The bytes of a file, which the caller keeps. */
typedef struct ot_bytes {
    const void *data;
    size_t n_bytes;
} ot_bytes;
/** The same over the bytes of such files, which are borrowed for the call; NULL or no bytes:
 * absent.
 */
OT_API ot_status ot_session_load_buffers(const ot_bytes *training, const ot_bytes *eval,
                                         const ot_bytes *optimizer, ot_checkpoint *checkpoint,
                                         const ot_session_options *options, ot_session **out);

/**
 * Give the session an optimizer model, or another one; NULL takes it away. Borrowed for the call;
 * on failure the session keeps what it had.
 *
 * Where the new model has the same update rule, the moments continue. Where it has another one, new
 * moments replace the old ones, and the number of steps done is 0. Moments of another rule that
 * came from a file are OT_ERR_INVALID, as in ot_session_create(). Plain SGD has no moments: it
 * drops those that came from a file, and keeps those of the rule it replaces; a rule with moments
 * that follows it begins with new ones.
 *
 * Collective over several ranks: other models on them are OT_ERR_MISMATCH. With `zero` of
 * ot_parallel_options, OT_ERR_UNSUPPORTED once an update has cut parameters that are packed for
 * their kernels.
 */
OT_API ot_status ot_session_set_optimizer(ot_session *session, const ot_model *optimizer);
/** NULL is fine. While another thread is inside, nothing happens. */
OT_API void ot_session_destroy(ot_session *session);

// Functions that return a number or a pointer return 0 or NULL for a NULL session.

/** The checkpoint the session works on; owned by whoever made it. */
OT_API ot_checkpoint *ot_session_checkpoint(ot_session *session);

typedef enum ot_mode { OT_MODE_TRAIN, OT_MODE_EVAL } ot_mode;

/** User inputs and outputs of the training or eval model, in order; parameters and gradient buffers
 * do not count. Without an eval model it has none. Names are owned by the session, and NULL out of
 * range. */
OT_API int ot_session_input_count(const ot_session *session, ot_mode mode);
OT_API const char *ot_session_input_name(const ot_session *session, ot_mode mode, int index);
OT_API int ot_session_output_count(const ot_session *session, ot_mode mode);
OT_API const char *ot_session_output_name(const ot_session *session, ot_mode mode, int index);
/** Declared type and shape of an input; dim sizes that are not numbers are -1. */
OT_API ot_status ot_session_input_info(const ot_session *session, ot_mode mode, int index,
                                       ot_dtype *dtype, ot_shape *shape);

/**
 * Run forward and backward once and add the gradients to the checkpoint's (or, after
 * ot_session_reset_gradients(), overwrite them). Parameters do not change;
 * ot_session_optimizer_step() does that.
 *
 * @param inputs   borrowed for the call; order of the training model's user inputs
 * @param outputs  outputs[i] NULL: receives a new tensor that the caller destroys; else it is
 * written into (the loss is first); of strings it must be NULL. n_outputs may be less than there
 * are.
 * @return OT_ERR_INVALID when an input has the wrong type or shape or bad values, or a given output
 * does not fit; OT_ERR_STATE when the checkpoint is nominal. After an error no parameter has
 * changed and no new tensor is given; the gradients may have changed
 */
OT_API ot_status ot_session_train_step(ot_session *session, const ot_tensor *const *inputs,
                                       int n_inputs, ot_tensor **outputs, int n_outputs);
/** Forward only, inference behaviour; changes nothing. Collective where the values are cut over
 * ranks (zero 3). OT_ERR_STATE without an eval model, else as ot_session_train_step(). */
OT_API ot_status ot_session_eval_step(ot_session *session, const ot_tensor *const *inputs,
                                      int n_inputs, ot_tensor **outputs, int n_outputs);
/** What an update was made of. */
typedef struct ot_update_info {
    size_t size; ///< sizeof(ot_update_info)
    int applied; ///< 0: the optimizer left everything as it was
    int finite;  ///< 0: the optimizer found gradients that are not
    double norm; ///< of the mean gradients, all together; NaN: the optimizer computes none
} ot_update_info;
#define OT_UPDATE_INFO_INIT                                                                        \
    {                                                                                              \
        sizeof(ot_update_info), 0, 1, 0.0                                                          \
    }
/**
 * Update the parameters from the gradients of so many train steps, by their mean: the optimizer
 * divides them as it reads them. The gradients stay as they are, but where the optimizer model
 * clips them in place, which divides them too, and where it cannot divide them: has no input
 * `gradient_divisor`, and gives them to another operator than AdamWOptimizer, SGDOptimizerV2 or
 * InplaceClipGradNorm, or to several. Then they are divided before.
 *
 * @param info NULL, or receives what happened
 * @return OT_ERR_INVALID for less than one train step; OT_ERR_STATE without an optimizer model, and
 * when the checkpoint is nominal
 */
OT_API ot_status ot_session_update(ot_session *session, int64_t n_micro_batches,
                                   ot_update_info *info);
/** ot_session_update() of one train step, or of gradients that are the mean already. */
OT_API ot_status ot_session_optimizer_step(ot_session *session);
/** 1: from now on evaluation steps and exports take the moving averages of the parameters, 0: the
 * parameters again. Collective with `zero` of ot_parallel_options, which cuts averages: so are
 * evaluation steps and exports that take them, as with `zero` 3. OT_ERR_STATE when the optimizer
 * keeps no averages. */
OT_API ot_status ot_session_use_averages(ot_session *session, int use);
/** The next train step overwrites the gradients instead of adding to them, as the first one of a
 * session does. Until then they stay as they are. */
OT_API void ot_session_reset_gradients(ot_session *session);

/**
 * The accumulated gradient of an input, of artifacts made with `input_gradients`.
 *
 * It has the shape that the input had in the last step. A train step with another shape is
 * OT_ERR_STATE unless a reset is due.
 *
 * @param name of a user input of the training model
 * @param out a copy, which the caller destroys
 * @return OT_ERR_NOT_FOUND for an input without gradient, OT_ERR_STATE before the first train step
 */
OT_API ot_status ot_session_get_input_gradient(const ot_session *session, const char *name,
                                               ot_tensor **out);

/** What the next train steps multiply the gradients with, and updates divide them by: for gradients
 * that a narrow type cannot hold. 1 until set; it stays the same from the first train step of an
 * update to the update. OT_ERR_INVALID unless it is finite and above 0; OT_ERR_STATE when the
 * training model has no input `onnxtrain.loss_scale`. */
OT_API ot_status ot_session_set_loss_scale(ot_session *session, double scale);

/** Multiply the accumulated gradients, e.g. by 1 / number of micro-batches. */
OT_API ot_status ot_session_scale_gradients(ot_session *session, double factor);

// ---- learning rate ----

/** Holds until set again or a schedule steps; needs no optimizer. OT_ERR_INVALID below 0. */
OT_API ot_status ot_session_set_learning_rate(ot_session *session, double learning_rate);
/** Groups of parameters that the optimizer model knows: 1 without groups, 0 without the model. */
OT_API int ot_session_group_count(const ot_session *session);
/** As ot_session_set_learning_rate(), one for each of the groups; the first one is then the
 * learning rate. OT_ERR_INVALID unless `n` is ot_session_group_count(), OT_ERR_STATE without an
 * optimizer. */
OT_API ot_status ot_session_set_learning_rates(ot_session *session, const double *rates, int n);
OT_API double ot_session_learning_rate(const ot_session *session); ///< 0.001 until set
OT_API int64_t
ot_session_step_count(const ot_session *session); ///< optimizer steps done, also before a resume

/** Use a schedule from now on, instead of an earlier one: sets initial_lr, and the learning rate
 * for the next step from the steps done. It is saved and restored with the session. */
OT_API ot_status ot_session_set_schedule(ot_session *session, const ot_schedule *schedule);
/** Learning rate for the next step from the number of optimizer steps done; idempotent.
 * OT_ERR_STATE without a schedule. */
OT_API ot_status ot_session_schedule_step(ot_session *session);
OT_API int ot_session_has_schedule(const ot_session *session); ///< 1 or 0

// ---- randomness ----

/** Seed of dropout and other random operators; the counter of train steps done goes on. */
OT_API void ot_session_set_seed(ot_session *session, uint64_t seed);

// ---- all parameters as one flat f32 vector: order of the training model's inputs, each row-major,
// no gaps. Other float types are converted; one that is no float (among those wanted) is
// OT_ERR_UNSUPPORTED, and a count that is not ot_session_parameters_size() OT_ERR_INVALID. ----

enum { OT_PARAMETERS_ALL = 0, OT_PARAMETERS_TRAINABLE = 1 };
/** Elements; also for a nominal checkpoint. */
OT_API int64_t ot_session_parameters_size(const ot_session *session, int which);
/** OT_ERR_STATE when the checkpoint is nominal. */
OT_API ot_status ot_session_get_parameters(ot_session *session, int which, float *to,
                                           int64_t count);
/** Gradients and moments stay. A nominal checkpoint becomes a complete one, with gradients of zero
 * and new moments; for that all parameters are needed, else OT_ERR_STATE. */
OT_API ot_status ot_session_set_parameters(ot_session *session, int which, const float *from,
                                           int64_t count);
/** Gradients of the trainable parameters, likewise; OT_ERR_STATE where a trainer's steps have kept
 * none (docs/trainer.md). */
OT_API ot_status ot_session_get_gradients(ot_session *session, float *to, int64_t count);
/** What the next optimizer step uses; a train step adds to it, or overwrites it when a reset is
 * due. */
OT_API ot_status ot_session_set_gradients(ot_session *session, const float *from, int64_t count);

// ---- saving and export ----

/** Save the checkpoint with what resuming bit for bit needs (seed, counters: properties
 * "onnxtrain.*"). */
OT_API ot_status ot_session_save(ot_session *session, const char *path);
/** As ot_session_save(), into memory: see ot_checkpoint_save_buffer(). */
OT_API ot_status ot_session_save_buffer(ot_session *session, void *to, size_t capacity,
                                        size_t *n_bytes);

/**
 * The eval model cut to the named outputs (any values of it), with the present parameters inside,
 * as an ONNX inference model.
 *
 * @param output_names NULL: the outputs of the eval model that do not depend on a target (labels),
 * or when there are none the values from which the loss is computed
 * @param out the caller destroys it. Collective where the values are cut over ranks (zero 3): rank
 * 0 gets the model, the others NULL
 * @return OT_ERR_STATE without an eval model, or when the checkpoint is nominal; OT_ERR_NOT_FOUND
 * for a name that it does not compute; OT_ERR_INVALID for no names, or one twice
 */
OT_API ot_status ot_session_export(ot_session *session, const char *const *output_names,
                                   int n_outputs, ot_model **out);
/** As ot_session_export(), without copies: the model refers to the parameters of the checkpoint.
 * For saving it at once. Destroy it before the session or the checkpoint is used for anything else.
 */
OT_API ot_status ot_session_export_view(ot_session *session, const char *const *output_names,
                                        int n_outputs, ot_model **out);

/** As ot_session_export_view(), for an eval model and a checkpoint without a session, as
 * ot_train_run() leaves them in its directory: `output_names` NULL then means the outputs of its
 * options. */
OT_API ot_status ot_model_export_view(const ot_model *eval, ot_checkpoint *checkpoint,
                                      const char *const *output_names, int n_outputs,
                                      ot_model **out);

/** Bytes: parameters + gradients + moments, and the largest plan so far. */
OT_API size_t ot_session_state_bytes(const ot_session *session);
OT_API size_t ot_session_plan_bytes(const ot_session *session);

/** The plan for the given input shapes: each step with its kernel and why it is that one, and which
 * operators run reference kernels; as text, or as a JSON object. Released by ot_string_free(). */
OT_API ot_status ot_session_describe_plan(ot_session *session, ot_mode mode,
                                          const ot_shape *input_shapes, int n_inputs, char **out);
OT_API ot_status ot_session_plan_json(ot_session *session, ot_mode mode, const ot_shape *shapes,
                                      int n_inputs, char **out);

#ifdef __cplusplus
}
#endif
#endif
