// SPDX-License-Identifier: Apache-2.0
// From the forward model with its loss to the training and the eval model.
#ifndef OT_ARTIFACTS_TRAINING_MODEL_H
#define OT_ARTIFACTS_TRAINING_MODEL_H

#include "artifacts/forward.h"

// Parameters become inputs, in initializer order; other initializers stay.
ot_status ot__parameters_to_inputs(const ot__forward *forward);
// eval_model.c: a copy with training mode switched off. What makes the values `kept` (NULL: none)
// of what it has anyway stays in it.
ot_status ot__eval_model(const ot_model *model, const ot__name_list *kept, ot_model **out);
// training_model.c: append gradients, accumulators and lazy_reset_grad to the forward's own model.
ot_status ot__training_model(ot__forward *forward, const ot_artifacts_options *options);
// generate.c: the artifacts of a closed forward, whose model becomes the training model.
// `original`: the model that the losses of the options were put behind; NULL: the forward has its
// own.
ot_status ot__artifacts_finish(ot__forward *forward, const ot_artifacts_options *options,
                               const ot_model *original, ot_artifacts **out);
// loss_note.c: what the options say of the loss into loss_terms, before parameters become inputs;
// terms as the model's metadata OT_METADATA_LOSS.
ot_status ot__loss_take(ot_artifacts *artifacts, const ot__forward *forward,
                        const ot_model *original, const ot_artifacts_options *options);
ot_status ot__loss_write(ot_model *model, const ot__loss_term *terms, int n_terms);

#endif
