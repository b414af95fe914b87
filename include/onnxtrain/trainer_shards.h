// SPDX-License-Identifier: Apache-2.0
// The state of a trainer by names, over any number of processes: as a tree, and as checkpoint
// directories.
#ifndef ONNXTRAIN_TRAINER_SHARDS_H
#define ONNXTRAIN_TRAINER_SHARDS_H

#include "onnxtrain/state_dict.h"
#include "onnxtrain/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As ot_session_get_shards(), for the session of a trainer. "train" has its step counts and loss
 * scale too. Gradients of an accumulation under way are no part of it. */
OT_API ot_status ot_trainer_get_shards(ot_trainer *trainer, unsigned sections,
                                       const ot_state_dict_options *options, ot_dict **out);
/** As ot_session_set_shards(). An accumulation under way is dropped; rates and schedules are those
 * that are given. */
OT_API ot_status ot_trainer_set_shards(ot_trainer *trainer, unsigned sections, const ot_dict *state,
                                       const ot_state_dict_options *options,
                                       ot_shards_report **report);
OT_API ot_status ot_trainer_check_shards(ot_trainer *trainer, unsigned sections,
                                         const ot_dict *state, const ot_state_dict_options *options,
                                         ot_shards_report **report);

/** As ot_session_save_shards(), with the trainer's step counts and loss scale. OT_ERR_STATE within
 * an accumulation, whose gradients a directory does not have. */
OT_API ot_status ot_trainer_save_shards(ot_trainer *trainer, const char *path,
                                        const ot_shards_save_options *options);
OT_API ot_status ot_trainer_save_shards_async(ot_trainer *trainer, ot_shards_job *job,
                                              const char *path,
                                              const ot_shards_save_options *options);
/** As ot_session_load_shards(), which sessions of trainers leave to this function: directories of
 * trainers, of sessions and of the training loop. An accumulation under way is dropped. */
OT_API ot_status ot_trainer_load_shards(ot_trainer *trainer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
