// SPDX-License-Identifier: Apache-2.0
// What a model's metadata say of its training, beside options that say the same.
#ifndef CLI_RECORDED_H
#define CLI_RECORDED_H

#include <stdbool.h>
#include <stdio.h>

#include "data_options.h"
#include "model_options.h"
#include "onnxtrain/record.h"

// Functions that return int give the exit code, after a message when it is not EXIT_SUCCESS.
int recorded_read(const ot_model *model, bool is_ignored, ot_record **out);
bool recorded_has_loss(const ot_record *record);
bool recorded_has_data(const ot_record *record);
// setup->loss without a word of the command line.
int recorded_terms(model_setup *setup);
// setup->loss as it is recorded, when what the command line says of it is the same.
int recorded_take_loss(model_setup *setup, const model_values *values, const ot_model *model,
                       int64_t ignored_label);
// Scale, mean, std and classes in the same way; `options` has what the command line says.
int recorded_take_data(const ot_record *record, const data_values *values, int n_mean, int n_std,
                       ot_data_options *options, ot_batches_options *batches);
// One line, unless there is no record.
void recorded_say(FILE *out, const ot_record *record);

#endif
