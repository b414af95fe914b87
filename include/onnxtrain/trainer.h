// SPDX-License-Identifier: Apache-2.0
// The trainer: one call a micro-batch. It decides the learning rate, when parameters are updated,
// and what is skipped; a session computes.
#ifndef ONNXTRAIN_TRAINER_H
#define ONNXTRAIN_TRAINER_H

#include "onnxtrain/dict.h"
#include "onnxtrain/session.h"
#include "onnxtrain/state_dict.h"
#include "onnxtrain/trainer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A trainer over a session. One thread at a time uses it, else OT_ERR_STATE. */
typedef struct ot_trainer ot_trainer;

/**
 * Make a trainer of a forward model whose loss is one of its outputs.
 *
 * Trained are all float initializers on a differentiable path to the loss, scalars included, but
 * those that options->frozen_weights names. What the exporter merged stays as it is.
 *
 * @param model       borrowed for the call
 * @param description inputs and outputs in the order in which steps take and give them. NULL: those
 * of the graph, and the loss is its only scalar float output
 * @param optimizer   NULL: its defaults
 * @param options     NULL: defaults
 * @param out         the caller destroys it
 * @return OT_ERR_INVALID naming all inputs, outputs and frozen weights that the model lacks, all
 * float initializers that are read but do not reach the loss and are not frozen, an
 * input that the model needs and the description lacks, or how many outputs are the loss;
 * OT_ERR_UNSUPPORTED naming options that this version refuses
 */
OT_API ot_status ot_trainer_create(const ot_model *model, const ot_model_description *description,
                                   const ot_optimizer_options *optimizer,
                                   const ot_trainer_options *options, ot_trainer **out);
/**
 * Artifacts for a trainer with these options, as ot_artifacts_generate() makes them: the weights of
 * options->frozen_weights do not train, and the optimizer has what grad_norm_clip, skip_non_finite
 * and average_decay say. For programs that need the artifacts themselves, as `onnxtrain train`.
 *
 * @param how NULL: defaults
 * @param out the caller destroys it
 */
OT_API ot_status ot_trainer_generate_artifacts(const ot_model *model,
                                               const ot_artifacts_options *how,
                                               const ot_trainer_options *options,
                                               ot_artifacts **out);
/**
 * What a session under a trainer with these options is made with: options->session, and what the
 * trainer's own options say of threads, memory, reproducibility, precision and values made again.
 * For programs that make the session themselves.
 *
 * @param out filled in as far as its size reaches
 */
OT_API ot_status ot_trainer_session_options(const ot_trainer_options *options,
                                            ot_session_options *out);
/**
 * A trainer over artifacts, which may be destroyed before it. Weights are frozen and gradients
 * clipped, checked and averaged as the artifacts have it: the options for these are not looked at.
 *
 * @param description inputs and outputs of the training model, all of the former, in the order in
 * which steps take and give them; the loss is the one that the artifacts have. NULL: all as the
 * training model has them
 * @return OT_ERR_INVALID naming all inputs and outputs that the training model lacks, or all inputs
 * that the description lacks
 */
OT_API ot_status ot_trainer_create_from_artifacts(ot_artifacts *artifacts,
                                                  const ot_model_description *description,
                                                  const ot_trainer_options *options,
                                                  ot_trainer **out);
/** The same over a session, which is borrowed until the trainer is destroyed. What
 * options->session says is the session's own matter and not looked at. */
OT_API ot_status ot_trainer_create_from_session(ot_session *session,
                                                const ot_model_description *description,
                                                const ot_trainer_options *options,
                                                ot_trainer **out);
/** NULL is fine. While another thread is inside, nothing happens. */
OT_API void ot_trainer_destroy(ot_trainer *trainer);

/** The session it works on, to look at and to export from: its train, optimizer and reset functions
 * return OT_ERR_STATE while the trainer lives. */
OT_API ot_session *ot_trainer_session(ot_trainer *trainer);

/** Inputs and outputs in the order of the description. Names are owned by the trainer, and NULL out
 * of range. */
OT_API int ot_trainer_input_count(const ot_trainer *trainer);
OT_API const char *ot_trainer_input_name(const ot_trainer *trainer, int index);
OT_API int ot_trainer_output_count(const ot_trainer *trainer);
OT_API const char *ot_trainer_output_name(const ot_trainer *trainer, int index);
/** In which element type the latest train step has computed an output, which is given out in the
 * type that the model declares; OT_DTYPE_UNDEFINED before the first one, and out of range. */
OT_API ot_dtype ot_trainer_output_computed_in(const ot_trainer *trainer, int index);

/** Use a schedule from now on, instead of an earlier one or a function; NULL: the optimizer's
 * learning rate. It is saved and restored with the session. */
OT_API ot_status ot_trainer_set_schedule(ot_trainer *trainer, const ot_schedule *schedule);

/**
 * The outputs that steps give from now on: a train step in this order, an evaluation step in that
 * of the description. n 0: all. Nothing else depends on it.
 *
 * @return OT_ERR_NOT_FOUND naming all that are no outputs; what was set before stays
 */
OT_API ot_status ot_trainer_set_fetches(ot_trainer *trainer, const char *const *names, int n);

/**
 * One micro-batch: forward, backward, and after as many as options->batch says the update of the
 * parameters by the mean of their gradients.
 *
 * A call that is refused changes nothing. One that fails while it runs drops the gradients of the
 * micro-batches since the last update, and the step count goes back to it; the message says so.
 *
 * @param inputs  borrowed for the call; in the order of the description. What the model does not
 * read is ignored
 * @param outputs outputs[i] NULL: receives a new tensor that the caller destroys; else it is
 * written into. The loss is that of this micro-batch, not scaled and not averaged
 * @return OT_ERR_INVALID naming input, axis, found and expected size, also where a symbol stands
 * for two sizes; OT_ERR_INTERRUPTED when a function of the caller failed
 */
OT_API ot_status ot_trainer_train_step(ot_trainer *trainer, const ot_tensor *const *inputs,
                                       int n_inputs, ot_tensor **outputs, int n_outputs);
/** Forward only, inference behaviour; changes nothing. Else as ot_trainer_train_step(). */
OT_API ot_status ot_trainer_eval_step(ot_trainer *trainer, const ot_tensor *const *inputs,
                                      int n_inputs, ot_tensor **outputs, int n_outputs);
/** Update the parameters by the mean over the micro-batches since the last update, as at the end of
 * an epoch; without any nothing happens. */
OT_API ot_status ot_trainer_flush(ot_trainer *trainer);

/** Where the training stands. learning_rate, loss_scale and gradient_norm are those of the last
 * call; NaN: there was none, or it was not computed. */
OT_API ot_status ot_trainer_info(const ot_trainer *trainer, ot_step_info *out);

/** Bytes that training takes at most. */
typedef struct ot_memory {
    size_t size;        ///< sizeof(ot_memory)
    size_t parameters;  ///< frozen ones and running statistics too, and what undoes a failed step
    size_t gradients;   ///< also until they are added to what is there
    size_t moments;     ///< and averages
    size_t derived;     ///< parameters in a narrower type
    size_t activations; ///< values within a step, and constants of the graph
    size_t scratch;     ///< of operators, and for changing the layouts of parameters
    size_t outputs;     ///< that a train step gives, all of them
    size_t structure;   ///< graphs, plans, lists
    size_t total;
    size_t staging; ///< contributions of other ranks to sums; `total` has it, too
} ot_memory;
#define OT_MEMORY_INIT                                                                             \
    {                                                                                              \
        sizeof(ot_memory), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                            \
    }
/**
 * What training on inputs of these shapes takes, by the plan of a train step, which is made for it
 * and kept. What the caller feeds is not counted, nor what oneDNN takes for itself.
 *
 * @param inputs in the order of the description
 * @return as a train step that is refused; OT_ERR_NO_MEMORY above the ceiling, naming the largest
 * values
 */
OT_API ot_status ot_trainer_memory(ot_trainer *trainer, const ot_shape *inputs, int n_inputs,
                                   ot_memory *out);
/**
 * The same for a training over ranks that need not be there, of a rank whose shares are largest.
 * The trainer is of one process, and stays as it is.
 *
 * @param inputs of a train step, which has the rows of a slice
 * @param n_sent bytes that the rank sends for an update, without agreements
 */
OT_API ot_status ot_trainer_predict(ot_trainer *trainer, const ot_parallel_ranks *ranks,
                                    const ot_shape *inputs, int n_inputs, ot_memory *out,
                                    int64_t *n_sent);

// ---- state ----

/**
 * The state as a tree: the layout of ONNX Runtime's ORTTrainer, and a section of our own.
 * Collective with ZeRO, whose ranks have parts of it: these are gathered on all of them. Gradients
 * of an accumulation under way are then the mean over the ranks, else those of this rank.
 *
 * @param sections OT_STATE_* added up
 * @param out      the caller destroys it
 */
OT_API ot_status ot_trainer_get_state(ot_trainer *trainer, unsigned sections, ot_dict **out);
/**
 * Take a state over, all of it or, on failure, nothing. Collective over the ranks of a trainer:
 * what does not fit one is taken by none, and with ZeRO all give the same whole state. Gradients of
 * an accumulation under way are dropped unless the state has some.
 *
 * A learning rate, a schedule and a seed that the program has given the trainer stay.
 *
 * @param state borrowed for the call. Without "model" or "optimizer" these stay as they are, with a
 * warning when all is asked for; so do the step counts without "train_step_info"
 * @return OT_ERR_INVALID naming all keys that are missing or unexpected, and where, or a tensor of
 * another type or shape, with both; OT_ERR_STATE when the moments are those of another optimizer
 */
OT_API ot_status ot_trainer_set_state(ot_trainer *trainer, const ot_dict *state,
                                      ot_strictness strictness);

typedef enum ot_format {
    OT_FORMAT_CHECKPOINT, ///< that of sessions, which they and ONNX Runtime read
    OT_FORMAT_HDF5,       ///< the state as a tree, as ONNX Runtime's ORTTrainer wrote it
} ot_format;

typedef struct ot_save_options {
    size_t size;                  ///< sizeof(ot_save_options)
    int include_optimizer_states; ///< 1; 0: neither moments nor gradients
    const char *user_dict;        ///< any text of the user's; NULL: none
    ot_format format;
} ot_save_options;
#define OT_SAVE_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(ot_save_options), 1, NULL, OT_FORMAT_CHECKPOINT                                     \
    }

/**
 * Write a file, durably: a kill at any moment leaves the old or the new one. What it has of the
 * trainer is its state, with the gradients of an accumulation under way: in a checkpoint those of
 * this rank.
 *
 * In HDF5 it is collective over the ranks of a trainer. With one path for all of them, rank 0
 * writes all of the state. With a path for each ("checkpoint0.ortcp", "checkpoint1.ortcp", ...),
 * every rank writes a file: what is its own of the state with ZeRO, as ONNX Runtime's ORTTrainer
 * does, else all of it. Where one rank cannot write, all return its error, and no file of them
 * stays.
 *
 * A checkpoint replaces one that is there, and has the properties of the trainer's. An HDF5 file is
 * always a new one; bf16 becomes f32 in it, which is as exact.
 *
 * @return for HDF5, OT_ERR_IO when there is something at the path, OT_ERR_UNSUPPORTED naming
 * parameters that it cannot hold ("a" and "a/b"), or that this library was built without it, and
 * OT_ERR_MISMATCH when some ranks name one path and others another
 */
OT_API ot_status ot_trainer_save(ot_trainer *trainer, const char *path,
                                 const ot_save_options *options);
/**
 * Go on from a file, of a trainer or of any other maker, as ot_trainer_set_state() does. Its format
 * is told by its first bytes. The properties of a checkpoint replace those of the trainer's. HDF5
 * files are for trusted sources (ot_dict_load_hdf5()); ot_trainer_load_apart() reads others.
 * A checkpoint is mapped, checked and read once, then copied tensor by tensor; it must not become
 * shorter meanwhile.
 *
 * @param paths     one, or all that the processes of a distributed training have saved, which are
 * joined as ot_state_aggregate() does
 * @param user_dict receives what was saved with it, to be freed with ot_string_free(); NULL when
 * there is none. May be NULL
 * @return OT_ERR_IO, OT_ERR_FORMAT; else as ot_trainer_set_state(). Nothing has changed then
 */
OT_API ot_status ot_trainer_load(ot_trainer *trainer, const char *const *paths, int n_paths,
                                 ot_strictness strictness, char **user_dict);
/** The same of files that are not to be trusted: those in HDF5 are read in a child process, as
 * ot_dict_load_hdf5_apart() does. */
OT_API ot_status ot_trainer_load_apart(ot_trainer *trainer, const char *const *paths, int n_paths,
                                       ot_strictness strictness, char **user_dict);

/**
 * One state of the files that the processes of a distributed training have saved, HDF5 files of
 * ONNX Runtime's ORTTrainer: with ZeRO, with layers split by rows or columns, or with both.
 *
 * @param paths all of them, in any order
 * @param out   the caller destroys it
 * @return OT_ERR_INVALID naming the files that are missing or there twice, or file and weight where
 * they do not fit together: unequal copies, parts that do not add up to the whole
 */
OT_API ot_status ot_state_aggregate(const char *const *paths, int n_paths, ot_dict **out);
/** The same of files that are not to be trusted, each read in a child process. */
OT_API ot_status ot_state_aggregate_apart(const char *const *paths, int n_paths, ot_dict **out);
/** A checkpoint of a state: parameters, moments, counters. Without moments all float parameters
 * are trainable ones. The caller destroys it. */
OT_API ot_status ot_state_to_checkpoint(const ot_dict *state, ot_checkpoint **out);

// ---- the trained model ----

/**
 * The forward model as it was given to ot_trainer_create(), with parameters and running statistics
 * as they are now: no gradients, nothing of the optimizer. Initializers that have been replaced
 * are the last ones, in their order. With ot_session_use_averages() they are the averages.
 *
 * @param out the caller destroys it. Collective where the values are cut over ranks (zero 3): rank
 * 0 gets the model, the others NULL; so is the next function, which rank 0 writes in
 * @return OT_ERR_STATE for a trainer over artifacts or a session: those have ot_session_export()
 */
OT_API ot_status ot_trainer_export(ot_trainer *trainer, ot_model **out);
/** The same into a file, as ot_model_save() writes it; an existing one is replaced. OT_ERR_IO when
 * it cannot be written. */
OT_API ot_status ot_trainer_save_as_onnx(ot_trainer *trainer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
