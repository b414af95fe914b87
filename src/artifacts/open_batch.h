// SPDX-License-Identifier: Apache-2.0
// Opening a batch size that an exporter fixed (open_batch.c), and trying whether the model still
// computes what it did (open_trial.c).
#ifndef OT_ARTIFACTS_OPEN_BATCH_H
#define OT_ARTIFACTS_OPEN_BATCH_H

#include "artifacts/training_model.h"

// A copy of `model` that takes any batch; NULL: it has no fixed one, or that stays. `line` gets
// what there is to say, if anything.
ot_status ot__open_batch(const ot_model *model, ot_model **out, ot__buf *line);
// The shape of an input with so many rows.
void ot__open_shape_of(const ot_value *input, const ot__place *place, int64_t batch, ot_shape *out);
// open_trial.c: both prepared, `opened` a changed clone of `fixed`. Runs twice the batch of random
// rows through it and each half through `fixed`; OT_ERR_INVALID or OT_ERR_UNSUPPORTED says what
// speaks against it.
ot_status ot__open_try(const ot_model *fixed, const ot_model *opened, const ot__opened *places);

#endif
