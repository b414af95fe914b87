// SPDX-License-Identifier: Apache-2.0
// What a trained model's metadata say of its training: the loss, and what was done with the data.
#ifndef ONNXTRAIN_RECORD_H
#define ONNXTRAIN_RECORD_H

#include "onnxtrain/artifacts.h"
#include "onnxtrain/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The record of a model, or of the training model of artifacts: with it, loss and data are the same
 * when the model is evaluated, or trained further.
 *
 * Functions take NULL as an empty record.
 */
typedef struct ot_record ot_record;

/**
 * Read the record of a model.
 *
 * @param out the caller destroys it; NULL when nothing is recorded
 * @return OT_ERR_FORMAT naming the key and what is wrong with it
 */
OT_API ot_status ot_record_read(const ot_model *model, ot_record **out);
OT_API void ot_record_destroy(ot_record *record); ///< NULL is fine

/**
 * Terms of the loss, for ot_artifacts_options, owned by the record. NULL: the loss is not recorded.
 *
 * @param n_losses how many there are, each `size` bytes after the one before. OT_LOSS_CUSTOM terms
 * lack their model
 */
OT_API const ot_loss_options *ot_record_losses(const ot_record *record, int *n_losses);
/** Put scale, mean and std into `data` and class names into `batches`, where they are recorded;
 * owned by the record. `batches` NULL: not wanted. */
OT_API ot_status ot_record_data(const ot_record *record, ot_data_options *data,
                                ot_batches_options *batches);
/** One line for people: "loss mse:y=target, scale 0.5". Owned by the record; "" for NULL. */
OT_API const char *ot_record_text(const ot_record *record);

/** What the user gives of what is recorded; NULL: nothing. */
typedef struct ot_record_given {
    size_t size;                   ///< sizeof(ot_record_given)
    const ot_loss_options *losses; ///< of which loss and factor count, and input and target where
                                   ///< they are not NULL
    int n_losses;
    const ot_reduction *reduction;
    const ot_tensor *class_weights;
    const int64_t *ignore_index;
    const int *class_axis;
    const double *scale;
    const double *mean;
    int n_mean;
    const double *std;
    int n_std;
} ot_record_given;
#define OT_RECORD_GIVEN_INIT                                                                       \
    {                                                                                              \
        sizeof(ot_record_given), NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0           \
    }

/** OT_ERR_INVALID naming both values when what is given differs from what is recorded. What is not
 * recorded may be anything. */
OT_API ot_status ot_record_check(const ot_record *record, const ot_record_given *given);

/**
 * Record in a model how it was trained, in place of what it says of that.
 *
 * @param artifacts that it was trained from: they have the loss
 * @param data      as the batches were made: scale, mean, std, class names; `forward` has the
 * output that is the loss itself. NULL: nothing of the data is recorded
 */
OT_API ot_status ot_record_write(ot_model *model, const ot_artifacts *artifacts,
                                 const ot_data_options *data);

#ifdef __cplusplus
}
#endif
#endif
