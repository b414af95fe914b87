// SPDX-License-Identifier: Apache-2.0
// Interface of `session`: steps over artifacts.
#ifndef OT_SESSION_SESSION_H
#define OT_SESSION_SESSION_H

#include "ckpt/ckpt.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "onnxtrain/runner.h"
#include "onnxtrain/session.h"
#include "onnxtrain/state_dict.h"
#include "passes/passes.h"

// Properties that carry what the checkpoint format has no place for.
#define OT_PROPERTY_PREFIX "onnxtrain."
#define OT_PROPERTY_SEED "onnxtrain.seed"
#define OT_PROPERTY_COUNTER "onnxtrain.counter" // train steps done: key of the random generator
#define OT_PROPERTY_LEARNING_RATE "onnxtrain.learning_rate" // string: exact
#define OT_PROPERTY_SCHEDULE "onnxtrain.schedule"           // string
#define OT_PROPERTY_OPTIMIZER "onnxtrain.optimizer" // string: operator whose moments these are
#define OT_PROPERTY_RULE "onnxtrain.rule" // string: operator that keeps none, and so has no moments

// In the eval model of a run's folder: the outputs of what is exported, a line each.
#define OT_METADATA_OUTPUTS "onnxtrain.outputs"

// ---- for trainers ----

// replace.c: models of the same inputs and outputs to come in the place of the training and the
// eval model; plans are then made anew. Replacing cannot fail, and takes over what was made.
typedef struct ot__replacement ot__replacement;
ot_status ot__replacement_make(const ot_session *session, const ot_model *training,
                               const ot_model *eval, ot__replacement **out);
void ot__replacement_destroy(ot__replacement *replacement);
void ot__session_replace(ot_session *session, ot__replacement *replacement);

// ---- for the training loop ----

// finite.c: the first float tensor, among those that training changes (trainable parameters, their
// slots, running statistics) or among the others (frozen parameters, constants of the training
// model), that is not finite.
typedef struct ot__not_finite {
    const char *name, *what; // "parameter", "constant", ...
    double value;
    bool is_moment; // of the parameter
} ot__not_finite;
bool ot__session_find_not_finite(const ot_session *session, bool is_trained, ot__not_finite *found);

// The same with all train steps since gradients were reset, in slices; both ways it is this call.
void ot__session_exchange_steps(ot_session *session);
// undo.c: what the last train step has changed besides gradients goes back to what it was before
// it, and forth again: for saving the state that the step was made from.
void ot__session_step_back(ot_session *session);
void ot__session_step_forth(ot_session *session);
// All train steps since ot_session_reset_gradients() go back, for good, and gradients are reset.
void ot__session_drop_steps(ot_session *session);

// ranks.c: those that the session trains with; NULL: it is alone.
ot_comm *ot__session_comm(const ot_session *session);
// Whether batch normalisations take the statistics of the batches of all ranks, also of one alone.
bool ot__session_syncs_norms(const ot_session *session);
// Whether the ranks have, or will have, parts of its state, which no file can hold then.
bool ot__session_is_cut(const ot_session *session);
int ot__session_zero(const ot_session *session);

// ---- updates by slices (slices.c) ----

// From now on every micro-batch of an update has so many slices, on all ranks, of which the session
// runs [first, last), one after the other: of a slice with `rows` of the micro-batch's `all` rows
// the gradients count rows * n_slices / all times. The divisor of the update takes in the number of
// slices. 1: none, and the functions below do nothing.
ot_status ot__session_set_slices(ot_session *session, int n_slices, int first, int last);
// The next train steps are those of a slice; each slice makes the steps of all micro-batches, from
// the random counter and the running statistics that the first one met.
void ot__session_begin_slice(ot_session *session, int slice);
// match_loss.c: how the training model's loss of a batch is made of those of its slices.
typedef enum ot__batch_loss_kind {
    OT_BATCH_LOSS_MEAN,    // over rows
    OT_BATCH_LOSS_SUM,     // or its gradient is that of a sum
    OT_BATCH_LOSS_WEIGHED, // mean by the weights of labels
    OT_BATCH_LOSS_MIXED,   // of terms that are means and others that are sums
    OT_BATCH_LOSS_UNKNOWN,
} ot__batch_loss_kind;
typedef struct ot__batch_loss {
    ot__batch_loss_kind kind;
    bool is_reduced; // to a number
    // WEIGHED
    int labels;               // user input
    const ot_tensor *weights; // of classes, the model's or the checkpoint's; NULL: all 1
    bool has_ignored_label;
    int64_t ignored_label;
} ot__batch_loss;
ot_status ot__session_find_loss(const ot_session *session, ot__batch_loss *out);
// The sum of the weights of labels: what a mean over them divides by.
double ot__batch_loss_weight(const ot__batch_loss *loss, const ot_tensor *labels);
// How often the gradients of the next train step count; 1 unless said.
ot_status ot__session_weigh(ot_session *session, double weight);
// The next train step is of a row that other slices have: it takes part in what all ranks compute
// together, and counts nothing, in gradients and in statistics.
ot_status ot__session_weigh_ghost(ot_session *session);
// Instead of a train step, for a slice without rows.
ot_status ot__session_skip_step(ot_session *session, ot_status given);
// gather_values.c. Whether values are cut over ranks (zero 3), and what exports take, which may be
// averages (zero 1 to 3). Collective where that is: rank 0 gets it whole, to look up or to take;
// else *out is NULL. The caller destroys it.
bool ot__session_cuts_values(const ot_session *session);
bool ot__session_cuts_shown(const ot_session *session);
bool ot__session_is_root(const ot_session *session);
ot_status ot__session_gather_shown(ot_session *session, ot_dict **out);
ot_status ot__session_look_up_value(ot_dict *values, const ot__parameter *p, ot_tensor **out);
ot_status ot__session_take_value(ot_dict *values, const ot__parameter *p, ot_tensor **out);
// gather_gradients.c. Gradients of an accumulation under way, of a session whose state is cut over
// ranks (zero). Collective: what one process has that is given the batches of all, by the names of
// parameters. The caller destroys it.
ot_status ot__session_gather_gradients(ot_session *session, ot_dict **out);
bool ot__session_has_cut_gradients(const ot_session *session); // each rank a share: zero 2, 3
// Collective: what is to be cut is, also before the first train step.
ot_status ot__session_cut_gradients(ot_session *session);
// What this rank takes of such a gradient; the caller destroys it.
ot_status ot__session_part_of_gradient(const ot_session *session, const ot__parameter *p,
                                       const ot_tensor *whole, ot_tensor **out);
// Collective: a checkpoint file of parameters alone, which rank 0 writes.
ot_status ot__session_save_values(ot_session *session, const char *path);
// An agreement of the session's ranks, if it has others.
ot_status ot__session_agree(ot_session *session, ot_status st, const char *call);
// Over several ranks steps may be collective (zero 2, 3). A rank that has nothing to compute in one
// takes part in it by ot__session_join_step(), which is nothing where they are not; `given`: how it
// went so far. ot__session_owe_steps(): the next n steps are those that others make, too.
bool ot__session_joins_steps(const ot_session *session, ot_mode mode);
ot_status ot__session_join_step(ot_session *session, ot_status given, ot_mode mode);
void ot__session_owe_steps(ot_session *session, ot_mode mode, int64_t n);
// step.c: whether sums may begin while the last step of a rank's last slice runs. Such a step is
// announced by ot__session_set_last(), and then collective.
bool ot__session_overlaps(const ot_session *session);
// A step that was announced or owed is not made: all ranks learn why. Returns `st`, or what all
// return.
ot_status ot__session_fail_step(ot_session *session, ot_status st, ot_mode mode);
// How a slice goes is known to this rank alone; all learn it with the update, which makes one sum
// of what the ranks have.
//
// Behind the last one the gradients are those of all, and running statistics the mean over the
// slices that had rows.
ot_status ot__session_end_slice(ot_session *session);
// A slice of the present update with rows has ended.
bool ot__session_has_slices_before(const ot_session *session);

// ---- for a trainer, which owns a session ----

// step.c. While it has a trainer that one alone makes the session's steps, with the functions
// below: ot_session_train_step(), ot_session_update() and what else changes gradients or the
// optimizer is OT_ERR_STATE.
void ot__session_set_trainer(ot_session *session, bool has_trainer);
// A step in a session that has been entered. `given`: how its user's own checks went on this rank;
// a train step is collective. `has_run`: it was not refused before it changed anything. Of a
// training step that fails only the gradients may have changed.
ot_status ot__session_step(ot_session *session, ot_status given, ot_mode mode,
                           const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                           int n_outputs, bool *has_run);
// session.c: as ot_session_create_from_artifacts(), but gradients are made when they are needed.
ot_status ot__session_create_for_trainer(ot_artifacts *artifacts, const ot_session_options *options,
                                         ot_session **out);
// update_inside.c. The update may come inside the next train steps, each of which is followed by
// ot__session_update() of one micro-batch, or dropped: then nobody looks at gradients in between.
// Where the session can do it, it keeps none from now on, and computes the outputs first, all else
// with the update.
void ot__session_ask_inside(ot_session *session, bool wants);
ot_status ot__session_keep_gradients(ot_session *session); // again: zeros
// The next train step is the last one of its update: over several ranks the sums of gradients begin
// while it runs.
void ot__session_set_last(ot_session *session);
extern ot_tensor *const ot__step_unwanted; // stands for an output that is not wanted
// Whether the optimizer leaves everything as it was where a gradient is not finite.
bool ot__session_skips(const ot_session *session);
bool ot__session_has_optimizer(const ot_session *session);
// What the optimizer keeps is whole until it is cut, and there once this has been called.
ot_status ot__session_make_slots(ot_session *session);
const char *ot__session_slot_key(const ot_session *session, int slot); // as state dicts have it
ot_precision ot__session_precision(const ot_session *session);
// In which element type the training model's output is computed that has this name, by the latest
// train step; OT_DTYPE_UNDEFINED: there was none, or there is no such output.
ot_dtype ot__session_computed_in(const ot_session *session, const char *output);
// Whether the training model takes a loss scale, and the present one.
bool ot__session_takes_loss_scale(const ot_session *session);
double ot__session_loss_scale(const ot_session *session);
// Collective, ahead of ot__session_update() with the same numbers: gradients become those of all
// ranks. *finite: they are, on all ranks. `given`: as of ot__session_step(); returns the status of
// all ranks.
ot_status ot__session_sum_gradients(ot_session *session, ot_status given, int64_t n_micro_batches,
                                    bool *finite);
ot_status ot__session_update(ot_session *session, ot_status given, int64_t n_micro_batches,
                             ot_update_info *info); // `given`: as of ot__session_step()
void ot__session_reset_gradients(ot_session *session);
// resume.c: ot_session_save() with the gradients of an accumulation under way, which are those of
// so many train steps. Other values of the trainer's are properties of the checkpoint.
// `flags`: as of ot_checkpoint_save().
ot_status ot__session_save_accumulating(ot_session *session, const char *path,
                                        int64_t n_micro_batches, unsigned flags);
// Before the first train step: the next one adds to the gradients that the checkpoint has been
// saved with. Returns the train steps that they are of; 0: it has none, and nothing changes.
int64_t ot__session_resume_accumulation(ot_session *session);
// resume.c: what resuming bit for bit needs and the checkpoint format has no place for.
typedef struct ot__resume {
    bool has_seed, has_counter, has_rate, has_schedule;
    uint64_t seed, counter;
    double learning_rate;
    ot_schedule schedule;
} ot__resume;
ot_status ot__resume_read(const ot_checkpoint *checkpoint, ot__resume *out); // of its properties
ot__resume ot__session_position(const ot_session *session);
void ot__session_go_to(ot_session *session, const ot__resume *position); // to what it has
void ot__schedule_text(const ot_schedule *schedule, ot__buf *out);
ot_status ot__schedule_parse(const char *text, ot_schedule *out); // OT_ERR_FORMAT: it is none

// get_shards.c, set_shards.c: ot_session_get_shards() and the like in a session that has been
// entered, with what its trainer adds to the section OT_STATE_OWN.
typedef struct ot__state_owner {
    void *context;
    ot_status (*fill)(void *context, ot_dict *to);
    ot_status (*check)(void *context, const ot_dict *from); // what is given, before all is taken
    // The numbers that were found then, from 0 on; false behind the last.
    bool (*number)(void *context, int index, const char **name, double *value);
    void (*take)(void *context); // after, whatever was given
} ot__state_owner;
ot_status ot__session_get_shards(ot_session *session, unsigned sections,
                                 const ot_state_dict_options *options, const ot__state_owner *owner,
                                 ot_dict **out);
// The same, of whole tensors views that lie as they do: ot_tensor.layout says how.
ot_status ot__session_get_packed(ot_session *session, unsigned sections,
                                 const ot_state_dict_options *options, const ot__state_owner *owner,
                                 ot_dict **out);
// The model's values that exports take.
ot_status ot__session_get_shown(ot_session *session, const ot_state_dict_options *options,
                                ot_dict **out);
// One value at a time, whole, on rank 0 or on all.
ot_status ot__session_stream_shards(ot_session *session, unsigned sections,
                                    const ot_state_dict_options *options, ot_gather gather,
                                    ot_state_sink sink, void *context);
ot_status ot__session_set_shards(ot_session *session, unsigned sections, const ot_dict *state,
                                 const ot_state_dict_options *options, bool is_check,
                                 const ot__state_owner *owner, ot_shards_report **report);

// directory.c: ot_session_save_shards() and the like in a session that has been entered; `given`:
// how checks went on this rank. `job` NULL: a save waits for its end.
ot_status ot__session_save_shards(ot_session *session, ot_status given,
                                  const ot__state_owner *owner, ot_shards_job *job,
                                  const char *path, const ot_shards_save_options *options);
ot_status ot__session_load_shards(ot_session *session, ot_status given,
                                  const ot__state_owner *owner, const char *path);
// Collective: the job has the memory that saves of the session take.
ot_status ot__session_prepare_job(ot_session *session, ot_shards_job *job);

// optimizer_model.c: what the session's optimizer keeps.
typedef struct ot__optimizer_info {
    const char *name;   // of the operator that updates; NULL: there is no optimizer
    bool keeps_moments; // that are more than zeros
    bool counts;        // updates, of all parameters together
    bool counts_each;   // of each parameter
} ot__optimizer_info;
ot__optimizer_info ot__session_optimizer(const ot_session *session);
// slots.c: whether an operator keeps anything, and whether two of them are one optimizer: by its
// name here, in ONNX Runtime or in files written before.
bool ot__optimizer_keeps(const char *name);
bool ot__optimizer_is_same(const char *a, const char *b);

// session.c. One thread at a time works with a session, and with its checkpoint. Leaving returns
// `status`.
ot_status ot__session_enter(const ot_session *session);
ot_status ot__session_leave(const ot_session *session, ot_status status);
uint64_t ot__session_counter(const ot_session *session); // train steps done
bool ot__session_has_trainer(const ot_session *session);
bool ot__is_learning_rate(double rate); // lr.c
// lr.c: false: it has none.
bool ot__session_get_schedule(const ot_session *session, ot_schedule *out);

// lr.c: what a caller gave, as a schedule of this version that makes sense.
ot_status ot__schedule_read(const ot_schedule *given, ot_schedule *own);

// A copy of the eval model as it was given; NULL in *out: the session has none.
ot_status ot__session_copy_eval_model(const ot_session *session, ot_model **out);

// session.c: the prepared model of a mode; NULL: there is none.
const ot_graph *ot__session_graph(const ot_session *session, ot_mode mode);
const ot_graph *ot__session_optimizer_graph(const ot_session *session); // NULL: there is none
// plan_cache.c: the training model as the last train step ran it; NULL: there was none.
const ot_model *ot__session_step_model(const ot_session *session);

// runner.c: ot_runner_run() where every input is a tensor, for all outputs.
ot_status ot__runner_run(ot_runner *runner, const ot_tensor *const *inputs, int n_inputs,
                         ot_tensor **outputs, int n_outputs);

// session_memory.c: bytes of the session when it trains on inputs of these shapes, which are those
// of the training model's user inputs. Plans that step, and runs nothing. `besides`: a model of its
// user's, which counts too; NULL: none.
typedef struct ot__session_bytes {
    size_t parameters, gradients, moments, derived, activations, scratch, outputs, structure;
    size_t staging; // of sums over ranks
} ot__session_bytes;
ot_status ot__session_measure(ot_session *session, const ot_shape *inputs, const ot_model *besides,
                              ot__session_bytes *out);
// predict.c: the same of a rank among others that need not be there, and what it sends.
ot_status ot__session_predict(ot_session *session, const ot_parallel_ranks *ranks,
                              const ot_shape *inputs, const ot_model *besides,
                              ot__session_bytes *out, int64_t *n_sent);

// ---- schedules (lr.c) ----

// What a caller gave, in this version's struct; OT_ERR_INVALID for a schedule that is none.
ot_status ot__schedule_read(const ot_schedule *given, ot_schedule *own);

#endif
