// SPDX-License-Identifier: Apache-2.0
// What the files of the training loop share.
#ifndef OT_TRAIN_LOOP_H
#define OT_TRAIN_LOOP_H

#include "onnxtrain/record.h"
#include "onnxtrain/shards.h"
#include "train/journal.h"
#include "trainer/trainer.h"

enum { OT_LOOP_OUTPUTS = 16 };

// Outputs of a step, reused while the batch size stays the same.
typedef struct ot__step_outputs {
    ot_tensor *tensor[OT_LOOP_OUTPUTS];
    int count;
    int64_t rows;
} ot__step_outputs;

// What is to be saved as soon as a step from it has given a finite loss. Until then the state is in
// memory alone, and the files are those of the save before.
typedef struct ot__save_plan {
    bool checkpoint, best;
    ot__position at;
    ot_event event;
} ot__save_plan;

typedef struct ot__loop {
    ot_trainer *trainer;
    ot_session *session; // of the trainer
    ot_comm *comm;       // of the session; NULL: there is one process
    ot_checkpoint *checkpoint;
    ot_batches *training, *validation;
    const ot_train_options *options;
    int n_inputs;
    const ot_tensor **inputs;
    ot__step_outputs train_outputs, eval_outputs;
    int64_t n_batches, n_slices;
    int64_t first_slice, last_slice; // of this rank, without the last
    ot__batch_loss loss;             // what a batch's is of its slices'
    double *shares;                  // of slices and batches of an update: weights of their labels
    int64_t n_shared;                // those batches
    double loss_factor;              // by which a slice's loss counts for that of the batch
    ot__metric_sums *all_steps;      // over several ranks: of those of an update, by ranks
    ot__metric_sums *steps;          // within these, of this rank
    int64_t n_steps, steps_room;
    int64_t start_step; // of this process
    ot__position at;
    double epoch_start;
    bool wants_stop;  // the callback does
    bool is_stopping; // that of some rank did, as all know
    bool is_finished; // by steps or patience
    bool is_at_end;   // the last state is being confirmed
    bool is_finite;   // the loss of the last batch,
    bool are_finite;  // and those of this rank in the update
    int64_t n_skipped;
    // saving
    char *checkpoint_path, *best_path, *model_path, *latest_path;
    ot_tensor **best;    // copies of what this rank has of all parameters, at the best epoch
    bool is_best_loaded; // they are whole, of a file
    ot_metrics best_metrics;
    ot__save_plan plan;
    bool is_confirmed; // the parameters have given a finite loss
    bool is_saved;     // the checkpoint has them
    bool has_model;    // the eval model has been written
    bool has_failed;   // to save
    bool owes_best;    // the file of the best epoch could not be written
    bool has_old_best; // of a run that this one overwrites, which has none
    bool saves_directories;
    char *directory_path;         // that was saved last, or is being saved
    bool has_updated, has_memory; // of a job: an update has been made; it has all that saves take
    ot_shards_job *job;           // that saves it while the run goes on; NULL: the run waits
    bool is_saving;               // the job does
    ot_event saving_event;        // of that, for its end
    ot__lock lock;                // on the checkpoint folder
    ot__journal journal;
} ot__loop;

// loop.c
void ot__loop_notify(ot__loop *l, const ot_event *event);
void ot__loop_warn(ot__loop *l, const ot_event *event); // of what the last error's message tells
ot_event ot__loop_event(const ot__loop *l, ot_event_kind kind);
// One batch through the training or eval model, its outputs into the sums. A loss that is not
// finite is an error, or where such updates are skipped does not count.
ot_status ot__loop_batch(ot__loop *l, ot_mode mode, ot__metric_sums *sums);

// loop_shares.c: how slices count in their batch.
ot_status ot__loop_find_loss(ot__loop *l);
// The weights of the labels of all slices of the next n batches, where they count by these; over
// several ranks collective.
ot_status ot__loop_share(ot__loop *l, int64_t n);
// Of the slice of batch `i` of the update with `rows` of its `all` rows: how often its gradients
// count, and its loss, beside its rows.
double ot__loop_weight(const ot__loop *l, int64_t slice, int64_t i, int64_t rows, int64_t all);
double ot__loop_loss_factor(const ot__loop *l, int64_t slice, int64_t i, int64_t rows, int64_t all);

// loop_ranks.c. How something went on all ranks, `st` on this one; and whether one wants to stop.
ot_status ot__loop_agree(ot__loop *l, ot_status st, const char *call);
ot_status ot__loop_agree_on_loss(ot__loop *l, ot_status st, bool *is_finite); // on all ranks
// The same of the start of the run; what must be the same on all ranks is.
ot_status ot__loop_join(ot__loop *l, ot_status st);
int64_t ot__loop_rank(const ot__loop *l); // 0 writes files
int64_t ot__loop_n_ranks(const ot__loop *l);
ot_status ot__loop_join_steps(ot__loop *l); // metrics of an update
// The sums of all batches, of which every rank evaluates some.
ot_status ot__loop_evaluate(ot__loop *l, ot_batches *batches, ot__metric_sums *sums);

// loop_update.c: how many slices batches have; the loop is told by the options or by where it
// stands.
ot_status ot__loop_cut(ot__loop *l);
void ot__loop_uncut(ot__loop *l);
// The next batches, until an update is due or the epoch ends, and the update.
ot_status ot__loop_update(ot__loop *l);
// A train step of the batch that was trained last.
ot_status ot__loop_repeat(ot__loop *l);

// schedule.c: the session gets the schedule of the options, if there is one.
ot_status ot__loop_set_schedule(ot__loop *l);

// not_finite.c: why the loss of the present batch may be `loss`
ot_status ot__loop_blame(const ot__loop *l, double loss);
// OT_ERR_NOT_FINITE naming the tensor, when what is trained is not finite. Collective where it is
// cut over ranks.
ot_status ot__loop_check_parameters(ot__loop *l);

// save.c
// The folder is this run's own from here on, and has no other run's checkpoint.
ot_status ot__save_open(ot__loop *l);
void ot__save_close(ot__loop *l);
// Save the present state when it is confirmed: as the checkpoint, as the best one.
void ot__save_later(ot__loop *l, bool checkpoint, bool best);
// After a train step whose loss was finite: the state before it is confirmed.
ot_status ot__save_confirmed(ot__loop *l);
// Confirm the present state by a step that is undone, and save it where there is a folder.
ot_status ot__save_last(ot__loop *l);
// How a save has ended on all ranks: where it could not write, the run goes on.
ot_status ot__save_endure(ot__loop *l, const ot_event *event, ot_status st);
// After the checkpoint is there.
void ot__save_published(ot__loop *l, const ot_event *event);
void ot__save_remove(const char *path); // a checkpoint file, and what belongs to it
ot_status ot__save_load_best(ot__loop *l);
ot_status ot__save_cut_best(ot__loop *l); // what was loaded, once values are cut
ot_status ot__save_restore_best(ot__loop *l);

// save_directory.c. All but the first two are collective.
// Whether checkpoints are directories.
ot_status ot__directory_choose(ot__loop *l);
// A checkpoint of the other format is removed.
void ot__directory_drop_other(ot__loop *l);
// The state, as the only directory when it is there: now, or by the job.
ot_status ot__directory_write(ot__loop *l);
// What the job saves: come to its end if all ranks have written; wait for that.
ot_status ot__directory_poll(ot__loop *l);
ot_status ot__directory_finish(ot__loop *l);

#endif
