// SPDX-License-Identifier: Apache-2.0
// Interface of `train`: the loop that the command and the bindings share.
#ifndef OT_TRAIN_TRAIN_H
#define OT_TRAIN_TRAIN_H

#include "artifacts/artifacts.h"
#include "data/data.h"
#include "onnxtrain/gradients.h"
#include "onnxtrain/train.h"
#include "session/session.h"

// data_options.c: what a caller gave, as structs of this version: data.batches is `batches`.
typedef struct ot__data_taken {
    ot_data_options data;
    ot_batches_options batches;
    const ot_batches_options *given_batches;
} ot__data_taken;
ot_status ot__data_options_take(const ot_data_options *given, ot__data_taken *taken);
// Back into the struct that was given, but for `batches`, which stays.
void ot__data_options_give(const ot__data_taken *taken, ot_data_options *to);

// metrics.c: sums over batches, from which ot_metrics follow.
typedef struct ot__metric_sums {
    int64_t rows, elements;
    double loss;                            // sum of loss * rows
    double correct, counted;                // classification
    double absolute, squared;               // regression: of the differences
    double shift, targets, targets_squared; // targets less the first one
} ot__metric_sums;
// scores and labels may be NULL (loss only); class_axis is 1 or -1.
ot_status ot__metrics_add(ot__metric_sums *sums, ot_task task, int class_axis, int64_t rows,
                          double loss, const ot_tensor *scores, const ot_tensor *labels);
// Sums over other batches, behind those that there are.
void ot__metrics_join(ot__metric_sums *sums, const ot__metric_sums *more);
ot_metrics ot__metrics_of(const ot__metric_sums *sums, double seconds);

// position.c: where a run stands.
#define OT_PROPERTY_EPOCH "onnxtrain.epoch"           // epochs done
#define OT_PROPERTY_BATCH "onnxtrain.batch"           // batches done of the present epoch
#define OT_PROPERTY_FIRST_STEP "onnxtrain.first_step" // steps there were when the run began
#define OT_PROPERTY_SLICES "onnxtrain.slices"         // of batches; none: 1
#define OT_PROPERTY_SUMS "onnxtrain.metrics"          // sums of the present epoch, exact
#define OT_PROPERTY_LAST "onnxtrain.last_epoch"       // metrics of the last epoch that ended
#define OT_PROPERTY_BEST "onnxtrain.best_epoch"       // and of the best one
#define OT_PROPERTY_BEST_LOSS "onnxtrain.best_loss"   // exact; none before an epoch has ended
#define OT_PROPERTY_OPTIONS "onnxtrain.options"       // those of the run, as JSON
#define OT_PROPERTY_BAD_EPOCHS "onnxtrain.bad_epochs" // epochs since the best one

typedef struct ot__epoch_metrics {
    bool is_validation;
    ot_metrics metrics; // rows 0: none
} ot__epoch_metrics;
typedef struct ot__position {
    int64_t epoch, batch, first_step, n_slices;
    ot__metric_sums sums;
    double best_loss; // infinite before an epoch has ended
    int64_t bad_epochs;
    ot__epoch_metrics last, best;
} ot__position;
ot_status ot__position_put(ot_checkpoint *checkpoint, const ot__position *position);
// A checkpoint without one is a fresh start, and first_step stays.
ot_status ot__position_get(const ot_checkpoint *checkpoint, int64_t n_batches,
                           ot__position *position);

#endif
