// SPDX-License-Identifier: Apache-2.0
// The training loop: epochs, schedule, validation, metrics, early stop, saving, resume, callbacks.
#ifndef ONNXTRAIN_TRAIN_H
#define ONNXTRAIN_TRAIN_H

#include "onnxtrain/data.h"
#include "onnxtrain/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- batches for a session ----

/**
 * Which fields of a dataset the inputs of a session take, and what is done with them.
 *
 * An input takes what `bind` says, else the field of its name, else what is left: of CSV columns,
 * one input takes all of them; of arrays, each input the next one.
 */
typedef struct ot_data_options {
    size_t size;                ///< sizeof(ot_data_options)
    const ot_model *forward;    ///< inputs that it lacks are targets; NULL: only `targets` are
    const char *const *targets; ///< inputs that are targets, the one of label and metrics first
    int n_targets;
    const char *const *probabilities; ///< inputs that take numbers in 0..1 alone, as the targets of
                                      ///< OT_LOSS_BCE_WITH_LOGITS
    int n_probabilities;
    const char *label;       ///< field of the first target, by name or position; NULL: that of its
                             ///< name, else for a single target the last column of a CSV
    const char *const *bind; ///< "input=fields", the fields as in ot_binding
    int n_bind;
    double scale;             ///< of float inputs that are not targets: multiplied first
    const double *mean, *std; ///< subtracted from them, then divided; NULL: nothing
    int n_channels;           ///< numbers of mean and std: 1, or the size of the row's axis 0
    double split; ///< fraction of the rows held out, chosen by the seed of `batches`; 0: none
    const ot_batches_options *batches; ///< of the training data, NULL: their defaults; validation
                                       ///< data are not shuffled
} ot_data_options;
#define OT_DATA_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(ot_data_options), NULL, NULL, 0, NULL, 0, NULL, NULL, 0, 1.0, NULL, NULL, 1, 0.0,   \
            NULL                                                                                   \
    }

/**
 * Batches of a dataset, bound to the inputs of a session: for ot_train_run() and
 * ot_train_evaluate(). Targets that are not of a float type are classes; strings become the same
 * classes in both.
 *
 * @param dataset,validation_dataset kept alive by the batches; the second may be NULL
 * @param options borrowed for the call; NULL for defaults
 * @param training,validation the caller destroys them; validation is NULL without
 * validation_dataset and split
 * @return OT_ERR_INVALID when an input finds no field; errors of ot_batches_create()
 */
OT_API ot_status ot_train_batches(const ot_session *session, const ot_dataset *dataset,
                                  const ot_dataset *validation_dataset,
                                  const ot_data_options *options, ot_batches **training,
                                  ot_batches **validation);
/** Position of the first target among the session's inputs, for metric_input; -1: there is none. */
OT_API int ot_train_target(const ot_session *session, const ot_data_options *options);

// ---- the loop ----

typedef enum ot_task {
    OT_TASK_NONE,           ///< loss only
    OT_TASK_CLASSIFICATION, ///< accuracy: arg max over the scores' class axis against the labels
                            ///< (sign for one logit)
    OT_TASK_REGRESSION,     ///< mean absolute error and R2
} ot_task;

/** Sums over the rows seen; what is not of the task is 0. */
typedef struct ot_metrics {
    int64_t rows;
    double loss;     ///< mean over rows
    double accuracy; ///< 0..1
    double mae, r2;
    double seconds;
} ot_metrics;

typedef enum ot_event_kind {
    OT_EVENT_STEP,        ///< after an optimizer step
    OT_EVENT_EPOCH,       ///< after an epoch and its validation
    OT_EVENT_SAVED,       ///< a checkpoint was written: `path`
    OT_EVENT_EARLY_STOP,  ///< no better for `patience` epochs
    OT_EVENT_LOG_LOST,    ///< `path` is written no more, as ot_error_message() says why; without a
                          ///< callback the library's log gets it
    OT_EVENT_SAVE_FAILED, ///< `path` could not be written, as ot_error_message() says, and the next
                          ///< save tries again; on rank 0. Without a callback the library's log
                          ///< gets it
} ot_event_kind;

typedef struct ot_event {
    ot_event_kind kind;
    int64_t epoch, n_epochs; ///< from 0
    int64_t batch, n_batches;
    int64_t step;
    double learning_rate;
    ot_metrics training;   ///< of the epoch so far
    ot_metrics validation; ///< OT_EVENT_EPOCH with validation data; rows 0 otherwise
    int is_best;           ///< OT_EVENT_EPOCH: best validation (or training) loss so far
    const char *path;
    int64_t n_skipped; ///< updates of this run that were skipped, since gradients were not finite
    double loss_scale; ///< of the last train step; 0: losses are not scaled
} ot_event;

/** Return non-zero to stop after this event: the state is saved and ot_train_run() returns
 * OT_ERR_INTERRUPTED. */
typedef int (*ot_train_callback)(void *context, const ot_event *event);

/** What is saved in checkpoint_dir. */
typedef enum ot_checkpoint_format {
    OT_CHECKPOINT_FORMAT_AUTO, ///< directories where ranks have parts of the state (ZeRO), and with
                               ///< save_async; else a file
    OT_CHECKPOINT_FORMAT_FILE, ///< `checkpoint`, which rank 0 writes
    OT_CHECKPOINT_FORMAT_DIRECTORY, ///< `step-<n>`, to which every rank writes its part, and a file
                                    ///< `latest` that names the only one that is kept
                                    ///< (onnxtrain/shards.h)
} ot_checkpoint_format;

typedef struct ot_train_options {
    size_t size; ///< sizeof(ot_train_options)
    int64_t epochs;
    int64_t max_steps; ///< stop after so many optimizer steps, those before a resume included; 0:
                       ///< no limit
    ot_task task;
    int metric_output; ///< output of the training and eval model that carries scores or
                       ///< predictions; -1: none
    int metric_input;  ///< input (position among the user inputs) that carries labels or targets
    const char *checkpoint_dir; ///< NULL: nothing is saved
    int64_t save_every;         ///< optimizer steps between checkpoints; 0: once an epoch
    int resume; ///< 1: go on from the checkpoint's position (its properties "onnxtrain.epoch",
                ///< "onnxtrain.batch")
    int64_t patience; ///< epochs without a better validation loss before stopping; 0: never
    int keep_best;    ///< 1: at the end the parameters of the best epoch, if one has ended
    ot_train_callback callback; ///< NULL: none
    void *callback_context;
    int class_axis; ///< axis of the scores that has the classes: 1, or -1: the last
    int overwrite;  ///< 1: the directory may have the checkpoint of another run; 0: with `resume`
                    ///< alone
    const char *const *outputs; ///< of models that ot_model_export_view() makes from the directory;
                                ///< NULL: as ot_session_export()
    int n_outputs;
    const ot_artifacts *artifacts; ///< for ot_record_write(), into such models; NULL: no record
    const ot_data_options *data;   ///< likewise
    const char *log; ///< file that gets a JSON object per event, one a line: anew, or with `resume`
                     ///< behind what it has; NULL: none
    const char *const *notes; ///< its first lines, {"event":"note","text":...}
    int n_notes;
    const char *config; ///< JSON in one line: all options of the run, for the line before those,
                        ///< {"event":"options","options":...}, and the property "onnxtrain.options"
                        ///< of its checkpoints; NULL: none
    const char *tensorboard_dir; ///< gets a new event file for TensorBoard: of each step
                                 ///< train/loss, train/lr and, where there are such,
                                 ///< train/loss_scale and train/skipped, of each epoch the
                                 ///< metrics; NULL: none
    const ot_schedule *schedule; ///< for the session; total_steps 0: those of all epochs or
                                 ///< max_steps; NULL: the one that it has
    int64_t slices; ///< of every batch, computed one after the other with masks of their own, from
                    ///< the same running statistics, whose mean counts; gradients are summed. With
                    ///< as many slices, results are those of as many processes. 0: as the run that
                    ///< is resumed, but at least the number of ranks
    ot_checkpoint_format checkpoint_format; ///< once it is saved, a checkpoint of the other format,
                                            ///< of an earlier run, is removed
    int save_async; ///< 1: directories are written by a thread while the training goes on, from a
                    ///< copy of what this rank writes. One at a time: a save waits for the one
                    ///< before it. OT_EVENT_SAVED comes when it is there, within the next updates
} ot_train_options;
#define OT_TRAIN_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(ot_train_options), 1, 0, OT_TASK_NONE, -1, -1, NULL, 0, 0, 0, 0, NULL, NULL, 1, 0,  \
            NULL, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, OT_CHECKPOINT_FORMAT_AUTO, 0  \
    }

/**
 * Collective where the trainer's session is over several ranks. Train. Batches give the user inputs
 * of the trainer's session in the session's order; a description of the trainer is checked against
 * each of them, those of the validation too. An update is made of as many batches as the trainer's
 * options say, and of those that are left at the end of an epoch.
 *
 * A state is saved when a train step from it has given a finite loss and all that is trained is
 * finite; until then the checkpoint before it stays. To confirm the last state, one more step is
 * made and undone. After an error in the data the state of the last whole step is saved.
 *
 * What cannot be written, as on a full disk, is told (OT_EVENT_SAVE_FAILED): what there was before
 * stays, the training goes on, and the next save tries again. What the last save could not write
 * (OT_ERR_IO) is the error of the run; its parameters are trained then all the same.
 *
 * Over several ranks all have the same data and options, and compute slices of each batch. Every
 * rank's callback is told, and the wish of one stops all after the same update; rank 0 writes the
 * files. Metrics are those of all rows, the same on all ranks, as is what is returned.
 *
 * @param training,validation validation may be NULL
 * @param options NULL for defaults
 * @param last receives the metrics of the parameters that the run ends with: of the last epoch's
 * validation (its training when there is no validation), of the best epoch's with keep_best; where
 * max_steps ends the run within an epoch, of a validation there, or of the epoch so far. rows 0:
 * not known. After an error only those of the best epoch, if the parameters are its. May be NULL
 * @return OT_ERR_INTERRUPTED when the callback asked to stop (the state is saved if there is a
 * checkpoint directory); OT_ERR_NOT_FINITE when the loss or a parameter is not finite, and why;
 * OT_ERR_STATE when the directory has the checkpoint of another run, or another run works in it.
 * OT_OK and OT_ERR_INTERRUPTED promise parameters that are finite and give a finite loss
 */
OT_API ot_status ot_train_run(ot_trainer *trainer, ot_batches *training, ot_batches *validation,
                              const ot_train_options *options, ot_metrics *last);

/**
 * What artifacts record of their loss, for the data and the metrics of a session over them.
 *
 * @param data    `forward` says whether they were made from it; receives targets and probabilities
 * (owned by `artifacts`; targets that are given stay)
 * @param batches receives number of classes and ignored label; NULL: not wanted
 * @param train   receives task, metric_output and, by the targets of `data`, metric_input. In
 * artifacts of another tool the output after the loss counts as scores when the target is a class
 */
OT_API ot_status ot_train_describe(const ot_artifacts *artifacts, const ot_session *session,
                                   ot_data_options *data, ot_batches_options *batches,
                                   ot_train_options *train);

/** One pass of the eval model over the data. Collective where the session is over several ranks:
 * each takes some of the batches, and all get the sum. */
OT_API ot_status ot_train_evaluate(ot_session *session, ot_batches *batches,
                                   const ot_train_options *options, ot_metrics *out);

#ifdef __cplusplus
}
#endif
#endif
