// SPDX-License-Identifier: Apache-2.0
// What `train` leaves: the trained model, and what a run's folder says of it.
#ifndef CLI_TRAIN_OUTPUT_H
#define CLI_TRAIN_OUTPUT_H

#include <stdbool.h>

#include "onnxtrain/onnxtrain.h"

typedef struct train_output {
    const char *path;   // "-": standard output; NULL: no model is written
    char *usual_path;   // where neither --out nor --checkpoint-dir says
    const char **names; // the forward model's outputs; from artifacts none
    int n_names;
} train_output;

// EXIT_SUCCESS, or EXIT_FAILED after a message, as all that follow. A file at the usual path, and
// the checkpoint of an earlier run in `folder`, are refused unless `overwrite`.
int train_output_init(train_output *o, const char *out, const char *model, const char *folder,
                      bool overwrite);
int train_output_check_folder(const char *folder);
// `forward` NULL: from artifacts. Labels that are strings get into `data`, for what is recorded.
int train_output_describe(train_output *o, const ot_model *forward, const ot_batches *training,
                          ot_batches_options *options);
// With how it was trained, so that `eval` and a later `train` do the same.
int train_output_write(const train_output *o, ot_session *session, const ot_artifacts *artifacts,
                       const ot_data_options *data);
void train_output_deinit(train_output *o);

#endif
