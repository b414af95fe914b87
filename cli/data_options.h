// SPDX-License-Identifier: Apache-2.0
// Options that say what data a session gets, and the batches made of it.
#ifndef CLI_DATA_OPTIONS_H
#define CLI_DATA_OPTIONS_H

#include "onnxtrain/artifacts.h"
#include "onnxtrain/data.h"
#include "onnxtrain/record.h"
#include "onnxtrain/session.h"
#include "onnxtrain/train.h"
#include "options.h"

typedef struct data_values {
    text_list data, validation, bind;
    double split;
    const char *label;
    int64_t batch_size;
    double scale;
    const char *mean, *std;
    int header;
    int64_t max_unpacked;
} data_values;

extern const option_spec data_option_table[];      // of one set of files: eval
extern const option_spec data_more_option_table[]; // what training adds

typedef struct data_setup {
    ot_dataset *dataset, *validation_dataset;
    ot_batches *training, *validation; // validation NULL: none
    double *mean, *std;
} data_setup;

// What the options alone show to be wrong: EXIT_SUCCESS, or EXIT_USAGE after a message.
int data_values_check(const data_values *values);
// `options` has what is known of the model, and gets what the command line and the record (NULL:
// there is none) say. The exit code: EXIT_SUCCESS, or EXIT_FAILED after a message.
int data_setup_init(data_setup *setup, const data_values *values, const ot_record *record,
                    const ot_session *session, ot_data_options *options,
                    ot_batches_options *batches);
void data_setup_deinit(data_setup *setup);
// Whether the model takes one number of rows alone and leaves some; `text` then says how many.
// `rows`: what they are, as in "training rows".
bool data_left_over(const ot_batches *batches, const char *rows, char *text, size_t size);

#endif
