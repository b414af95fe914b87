// SPDX-License-Identifier: Apache-2.0
// Face of `train`: the loop that the command and the bindings share.
#ifndef OT_TRAIN_TRAIN_H
#define OT_TRAIN_TRAIN_H

#include "artifacts/artifacts.h"
#include "data/data.h"
#include "onnxtrain/gradients.h"
#include "onnxtrain/train.h"
#include "session/session.h"

// Where a run stands, as checkpoint properties.
#define OT_PROPERTY_EPOCH "onnxtrain.epoch"  // epochs done
#define OT_PROPERTY_BATCH "onnxtrain.batch"  // batches done of the present epoch
#define OT_PROPERTY_SUMS "onnxtrain.metrics" // sums of the present epoch, exact
#define OT_PROPERTY_BEST_LOSS                                                                      \
    "onnxtrain.best_loss" // string: exact; absent before the first epoch's end
#define OT_PROPERTY_BAD_EPOCHS "onnxtrain.bad_epochs" // epochs since the best one

// batches.c
ot_status ot__data_options_check(const ot_data_options *options);

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
ot_metrics ot__metrics_of(const ot__metric_sums *sums, double seconds);

#endif
