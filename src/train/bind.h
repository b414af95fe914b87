// SPDX-License-Identifier: Apache-2.0
// The inputs of a session on their way to the fields of a dataset. Private to `train`.
#ifndef OT_TRAIN_BIND_H
#define OT_TRAIN_BIND_H

#include "train/train.h"

typedef struct ot__inputs {
    const ot_session *session;
    ot_binding *bindings; // in the session's order
    bool *is_target;      // per input
    int count, n_targets;
    int target;      // the first target; -1: none
    ot__buf columns; // text of `fields` made for columns of a CSV
} ot__inputs;

// bind.c: sets `fields` of all bindings, which stay good until the next call.
ot_status ot__inputs_bind(ot__inputs *inputs, const ot_dataset *dataset,
                          const ot_data_options *options);

// match_class_axis.c: says of labels that do not fit when they would with the classes on the other
// axis of the scores. Returns `st`.
ot_status ot__explain_class_axis(ot_status st, const ot_session *session, const ot_dataset *dataset,
                                 const ot__inputs *inputs);

// fixed_batch.c: a model that takes one number of rows alone gets that and no short batches;
// OT_ERR_INVALID when another one is asked for.
ot_status ot__batch_size_settle(const ot_session *session, ot_batches_options *how, int64_t *fixed);
ot_status ot__batch_size_check(const ot_batches *batches, int64_t fixed); // NULL is fine

#endif
