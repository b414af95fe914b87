// SPDX-License-Identifier: Apache-2.0
// States of a trainer by names: how they are made, and how they are taken.
#ifndef OT_TRAINER_STATE_H
#define OT_TRAINER_STATE_H

#include "onnxtrain/dict.h"
#include "trainer/deal.h"
#include "trainer/trainer.h"

// Names of a state. Those but for the last section are those of ONNX Runtime's ORTTrainer.
#define OT_KEY_MODEL "model"
#define OT_KEY_FULL_PRECISION "full_precision"
#define OT_KEY_OPTIMIZER "optimizer"
#define OT_KEY_UPDATE_COUNT "Update_Count"
#define OT_KEY_SHARED "shared_optimizer_state"
#define OT_KEY_STEP "Step"
#define OT_KEY_OPTIONS "trainer_options"
#define OT_KEY_MIXED_PRECISION "mixed_precision"
#define OT_KEY_ZERO_STAGE "zero_stage"
#define OT_KEY_WORLD_RANK "world_rank"
#define OT_KEY_WORLD_SIZE "world_size"
#define OT_KEY_OPTIMIZER_NAME "optimizer_name"
#define OT_KEY_DATA_PARALLEL "data_parallel_size"
#define OT_KEY_HORIZONTAL_PARALLEL "horizontal_parallel_size"
#define OT_KEY_STEPS "train_step_info"
#define OT_KEY_OPTIMIZATION_STEP "optimization_step"
#define OT_KEY_TRAIN_STEP "step"
#define OT_KEY_PARTITION "partition_info"
#define OT_KEY_ORIGINAL_DIM "original_dim"
#define OT_KEY_ROW_PARTITION "megatron_row_partition"
#define OT_KEY_USER_DICT "user_dict"
#define OT_KEY_OWN "onnxtrain"
#define OT_KEY_SEED "seed"
#define OT_KEY_COUNTER "counter"
#define OT_KEY_LEARNING_RATE "learning_rate"
#define OT_KEY_SCHEDULE "schedule"
#define OT_KEY_LOSS_SCALE "loss_scale"
#define OT_KEY_STABLE_UPDATES "stable_updates" // with finite gradients since the scale last changed
#define OT_KEY_GRADIENT_SCALE "gradient_scale" // the loss scale of an accumulation under way
#define OT_KEY_PHASE "phase"
#define OT_KEY_OPTIMIZER_STEP "optimizer_step"
#define OT_KEY_UPDATES "updates"
#define OT_KEY_AVERAGES "averages"
#define OT_KEY_ACCUMULATED "accumulated"
#define OT_KEY_GRADIENTS "gradients"
#define OT_KEY_STATISTICS "statistics"  // those of this rank, within an accumulation
#define OT_KEY_SHARDS_STEP "train_step" // in state dicts, where "step" is that of updates
extern const char *const ot__moment_keys[OT_SLOT_MOMENTS]; // "Moment_1", "Moment_2"

// Where a trainer stands.
typedef struct ot__trainer_position {
    ot__resume session;
    ot__scale_position scale;
    int64_t optimization_step, step;
    int64_t phase, n_accumulated;
} ot__trainer_position;

// What a state is made of: a checkpoint, which is that of the trainer or one that has been read.
typedef struct ot__state_source {
    const ot_trainer *trainer; // whose layout of the state counts
    ot_checkpoint *checkpoint; // row-major
    const char *optimizer;     // whose moments those of the checkpoint are; NULL: unknown
    ot__trainer_position position;
    ot_dict *whole;     // a state dict with what is cut over ranks; NULL: nothing is
    ot_dict *gradients; // of all ranks; NULL: those of the checkpoint
    ot_dict *means;     // of all ranks' running statistics; NULL: those of the checkpoint
    bool is_view;       // tensors are not copied
    // A state of several, each of one rank: what it has of the weights, which `whole` has alone.
    bool is_dealt, deals_weights; // their moments and averages alone, or the weights, too
    ot__deal deal;
} ot__state_source;

// Values of megatron_row_partition.
enum { OT_SPLIT_NONE = -1, OT_SPLIT_COLUMNS = 0, OT_SPLIT_ROWS = 1 };

// trainer_state.c
ot_status ot__state_make(const ot__state_source *source, unsigned sections, ot_dict **out);
// The trainer's own, as it is now; its parameters become row-major. Collective where its session is
// cut over ranks: tensors are gathered. ot__state_source_end() frees them.
ot_status ot__state_of_trainer(ot_trainer *trainer, bool is_view, ot__state_source *out);
// Of what has been gathered, which becomes the source's.
void ot__state_source_begin(ot_trainer *trainer, ot_dict *whole, bool is_view,
                            ot__state_source *out);
void ot__state_source_end(ot__state_source *source);
// rank_state.c, collective. What this rank has of a state that ZeRO deals out, gathered value by
// value.
ot_status ot__state_of_rank(ot_trainer *trainer, bool has_optimizer, ot__state_source *out);
// Within an accumulation each rank has running statistics of its own: their means.
ot_status ot__state_add_means(ot__state_source *source);

// trainer_constants.c: graphs with constants of a state that have other values than the trainer's.
typedef struct ot__other_constants {
    ot_model *forward;       // as the trainer's
    ot__replacement *models; // NULL: there are none
} ot__other_constants;
ot_status ot__constants_make(const ot_trainer *trainer, const ot_dict *values, // NULL is fine
                             ot__other_constants *out);
void ot__constants_take(ot_trainer *trainer, ot__other_constants *constants);
void ot__constants_drop(ot__other_constants *constants);

// What this rank has of a tensor that is cut over ranks.
typedef struct ot__own_part {
    ot_tensor *to, *from;
} ot__own_part;

// trainer_load.c: a state that has been checked against a trainer, and can be taken.
typedef struct ot__pending {
    const ot_trainer *trainer;
    const ot_checkpoint *view; // of the file that the tensors lie in; NULL: in none
    const ot_dict *parameters, *moments, *averages, *gradients; // NULL: not given
    const ot_dict *updates;
    bool has_position, has_optimizer_step;
    ot__trainer_position position; // of which the session's part says itself what it has
    int64_t optimizer_step;
    ot__other_constants constants;
    ot__own_part *parts;
    int n_parts, parts_capacity;
} ot__pending;
// Collective where the session is cut over ranks, of which each has the whole state; `given`: how
// it went on this rank so far. Fails on all ranks or on none.
ot_status ot__pending_make(ot_trainer *trainer, ot_status given, const ot_dict *state,
                           ot_strictness strictness, ot__pending *out);
void ot__pending_drop(ot__pending *pending); // also of one that was taken
// trainer_take.c
ot_status ot__pending_cut(const ot_trainer *trainer, ot__pending *pending); // makes its parts
void ot__pending_take(ot_trainer *trainer, ot__pending *pending);
// Looking into a state, or into a part that it lacks, which is NULL.
bool ot__state_has(const ot_dict *dict, const char *name);
const ot_dict *ot__state_dict(const ot_dict *dict, const char *name);     // NULL: there is none
const ot_tensor *ot__state_tensor(const ot_dict *dict, const char *name); // NULL: there is none

// trainer_hdf5.c: a state from a file, with the names that it was made with. `is_apart`: that is
// not trusted.
ot_status ot__state_load_hdf5(const char *path, bool is_apart, ot_dict **out);
ot_status ot__trainer_load_hdf5(ot_trainer *trainer, const char *path, bool is_apart,
                                ot_strictness strictness, char **user_dict);
// All files of a state that several processes have saved; the first in aggregate_files.c. `rank`:
// whose own gradients and statistics it gets; -1: the means over the ranks.
ot_status ot__state_aggregate_files(const char *const *paths, int n_paths, int rank, bool is_apart,
                                    ot_dict **out);
ot_status ot__trainer_load_shards(ot_trainer *trainer, const char *const *paths, int n_paths,
                                  bool is_apart, ot_strictness strictness, char **user_dict);
// trainer_save_hdf5.c. Collective over the ranks of a trainer. `given`: how it went on this one.
ot_status ot__trainer_save_hdf5(ot_trainer *trainer, ot_status given, const char *path,
                                const ot_save_options *options);

// Properties of a file. What its checkpoint says already is not there: the numbers of steps are by
// how many they are more than those of the checkpoint.
#define OT_PROPERTY_MORE_UPDATES "onnxtrain.more_updates" // updates that schedules count
#define OT_PROPERTY_USER_DICT "onnxtrain.user_dict"

// trainer_save.c: where a trainer stands that a checkpoint has been saved from.
ot_status ot__position_read(const ot_checkpoint *checkpoint, int64_t accumulation,
                            ot__trainer_position *out);

#endif
