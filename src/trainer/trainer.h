// SPDX-License-Identifier: Apache-2.0
// Interface of `trainer`: one call a micro-batch over a session.
#ifndef OT_TRAINER_TRAINER_H
#define OT_TRAINER_TRAINER_H

#include "artifacts/artifacts.h"
#include "onnxtrain/trainer.h"
#include "session/session.h"

#define OT_KIND_TRAINER "trainer"

// A described input or output.
typedef struct ot__described {
    const char *name;
    const ot_dim_description *dims; // NULL: whatever the model takes
    int n_dims;
    int train, eval; // position among the user inputs or outputs of the two models; -1: it has none
} ot__described;

// A symbol of the description, and the size that it has in the present call.
typedef struct ot__symbol {
    const char *name;
    int64_t size; // -1: none yet
    int i_input;  // where it was met
    int axis;
} ot__symbol;

// Options that states say.
typedef struct ot__recorded_options {
    bool mixed_precision;
    int64_t zero_stage, world_rank, world_size, data_parallel_size, horizontal_parallel_size;
} ot__recorded_options;

// Where a loss scale stands.
typedef struct ot__scale_position {
    bool is_there;
    double loss_scale;
    int64_t n_stable;
    double of_gradients; // of an accumulation under way; 0: there is none
} ot__scale_position;

struct ot_trainer {
    ot__guard guard;
    ot__arena *arena; // of the lists below
    ot_session *session;
    bool owns_session;
    ot_comm *comm;     // its own; NULL: there is none, or it is the program's
    ot_model *forward; // as given, its parameters are the checkpoint's tensors; NULL: there is none
    ot__described *inputs, *outputs;
    int n_inputs, n_outputs;
    ot__symbol *symbols;
    int n_symbols;
    int *fetches; // positions among the outputs
    int n_fetches;
    const ot_tensor **step_inputs; // as the session takes and gives them
    ot_tensor **step_outputs;
    int64_t accumulation;
    ot_schedule schedule;
    bool has_schedule;
    ot_schedule_function schedule_function;
    void *schedule_context;
    double *rates; // one a parameter group
    int n_rates;
    const char *step_graph_path; // where the graph of the first step goes; NULL: nowhere any more
    bool keeps_rate, keeps_seed; // of the program, whatever a state has
    ot__recorded_options recorded;
    ot_precision precision;
    ot_loss_scaler *scaler; // the program's, or `own_scaler`; NULL: losses are not scaled
    ot_loss_scaler own_scaler;
    bool skips_not_finite; // somebody has asked for it
    ot_step_info info;
    int64_t phase;         // calls since the last update was due: it is due again at `accumulation`
    int64_t n_accumulated; // micro-batches in the gradients
};

// trainer_artifacts.c: `options` have been checked; `wiring`: what is asked for besides.
ot_status ot__trainer_artifacts(const ot_model *model, const ot_artifacts_options *how,
                                const ot_trainer_options *options, ot__optimizer_wiring wiring,
                                ot_artifacts **out);

// trainer.c: ot_trainer_create_from_artifacts() with a description and options that have been
// taken.
ot_status ot__trainer_over_artifacts(ot_artifacts *artifacts,
                                     const ot_model_description *description,
                                     const ot_trainer_options *options, ot_trainer **out);
ot_status ot__trainer_enter(const ot_trainer *trainer);
ot_status ot__trainer_leave(const ot_trainer *trainer, ot_status status);
ot_status ot__trainer_set_rate(ot_trainer *trainer, double lr); // without a schedule

// trainer_ranks.c: the ranks that a session of these options is over, in `parallel`, which
// session->parallel points to from then on; `own`: a communicator that was opened for it, or NULL.
ot_status ot__trainer_open_ranks(const ot_trainer_options *options, ot_session_options *session,
                                 ot_parallel_options *parallel, ot_comm **own);
// All ranks of its session have made the trainer, or none has; `st`: how it went on this one.
ot_status ot__trainer_join(ot_trainer *trainer, const ot_trainer_options *options, ot_status st);

// trainer_describe.c: what steps take and give; NULL: what the session has.
ot_status ot__trainer_describe(ot_trainer *trainer, const ot_model_description *description);

// ---- for the training loop: the two halves of ot_trainer_train_step(), in a session that nobody
// else enters ----

// trainer_step.c: forward and backward of one micro-batch, whose gradients are added to those of
// the ones before it. Inputs and outputs are in the session's order.
ot_status ot__trainer_accumulate(ot_trainer *trainer, const ot_tensor *const *inputs, int n_inputs,
                                 ot_tensor **outputs, int n_outputs);
// Before anything that plans such a step.
void ot__trainer_ask_inside(ot_trainer *trainer);
// The update by the mean over what has been accumulated, if anything has; `given`: how that went on
// this rank.
ot_status ot__trainer_update(ot_trainer *trainer, ot_status given);
// All micro-batches since the last update are taken back.
void ot__trainer_drop(ot_trainer *trainer);
// The state that the last micro-batch was computed from, and back: for saving it.
void ot__trainer_step_back(ot_trainer *trainer);
void ot__trainer_step_forth(ot_trainer *trainer);
// What has been accumulated is forgotten, without taking its steps back: the next micro-batch is
// the first of an update.
void ot__trainer_restart(ot_trainer *trainer);

// trainer_slices.c: the micro-batches since the last update come again, for the next slice of them.
void ot__trainer_uncount_steps(ot_trainer *trainer); // of the accumulation
void ot__trainer_begin_slice(ot_trainer *trainer, int slice);
void ot__trainer_count_step(ot_trainer *trainer);
// A micro-batch of which the slice has no rows.
ot_status ot__trainer_skip_step(ot_trainer *trainer);
// The state that all micro-batches since the last update were computed from, in slices, and back.
void ot__trainer_go_back(ot_trainer *trainer);
void ot__trainer_go_forth(ot_trainer *trainer);

// trainer_scaler.c
double ot__trainer_loss_scale(const ot_trainer *trainer); // of the last step; 0: there is none
bool ot__trainer_may_skip(const ot_trainer *trainer);     // go on after a loss that is not finite
ot_status ot__trainer_take_scaler(ot_trainer *trainer, const ot_trainer_options *options);
ot_status ot__trainer_set_scale(ot_trainer *trainer);    // of a train step
bool ot__trainer_asks_scaler(const ot_trainer *trainer); // it is a function of the program
// Around an update: *before is the scaler to go back to when the update fails. *given: how it went
// on this rank; returns what all ranks have failed with, before any was asked.
ot_status ot__trainer_ask_scaler(ot_trainer *trainer, ot_status *given, ot_loss_scaler *before);
void ot__trainer_unask_scaler(ot_trainer *trainer, const ot_loss_scaler *before);
void ot__trainer_adapt_scale(ot_trainer *trainer);
ot_status ot__loss_scale_check(double scale); // of a state
ot__scale_position ot__trainer_scale_position(const ot_trainer *trainer);
void ot__trainer_go_to_scale(ot_trainer *trainer, const ot__scale_position *at);

// trainer_dropout.c: a copy in which every Dropout whose training mode is an initializer has one
// that is true, so that the step decides; NULL in *out: `model` is such a one. A warning names
// those that a Constant turns off.
ot_status ot__trainer_follow_step(const ot_model *model, ot_model **out);

// trainer_create.c: artifacts of `forward`, which is as that of the trainer but for its constants,
// without an optimizer.
ot_status ot__trainer_generate_again(const ot_trainer *trainer, const ot_model *forward,
                                     ot_artifacts **out);

// trainer_graphs.c: the files of debug.graph_save_paths; that of the first step once it is made.
ot_status ot__trainer_save_graphs(ot_trainer *trainer, const ot_trainer_options *options);
void ot__trainer_save_step_graph(ot_trainer *trainer);

// trainer_step.c: what a schedule says of the next update.
ot_status ot__trainer_set_next_rate(ot_trainer *trainer);

// trainer_save.c: the loss scale as properties of the checkpoint, for saving it.
ot_status ot__trainer_put_scale(const ot_trainer *trainer);
// The position that the checkpoint has been saved with.
ot_status ot__trainer_resume(ot_trainer *trainer);

// trainer_export.c: the model that the trainer was made of, without the values of its parameters.
ot_status ot__trainer_keep_forward(ot_trainer *trainer, const ot_model *model);

// trainer_inputs.c: number, axes and sizes of a call's inputs against the description. Those of the
// loop are in the session's order.
ot_status ot__trainer_check_batch(ot_trainer *trainer, ot_mode mode,
                                  const ot_tensor *const *inputs);
ot_status ot__trainer_check_inputs(ot_trainer *trainer, const ot_tensor *const *inputs,
                                   int n_inputs);
ot_status ot__trainer_check_shapes(ot_trainer *trainer, const ot_shape *inputs, int n_inputs);

#endif
