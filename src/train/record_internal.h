// SPDX-License-Identifier: Apache-2.0
// Records in memory and as strings. Private to `train`.
#ifndef OT_TRAIN_RECORD_INTERNAL_H
#define OT_TRAIN_RECORD_INTERNAL_H

#include "onnxtrain/record.h"
#include "train/train.h"

struct ot_record {
    ot__arena *arena;
    ot_loss_options *losses; // their weights are the record's own
    int n_losses;
    bool has_data;
    double scale;
    const double *mean, *std; // n_channels of each, or NULL
    int n_channels;
    const char **class_names; // NULL: none are recorded
    int n_classes;
    const char *text;
};

// record_text.c: "[WEIGHT*]LOSS[:VALUE[=TARGET]]" for each term; "0.5,0.25".
void ot__record_say_losses(ot__buf *text, const ot_loss_options *losses, int n);
void ot__record_say_numbers(ot__buf *text, const double *numbers, int n);

ot_status ot__record_say(ot_record *record); // sets its text

// class_names.c: a JSON list of strings, whatever their bytes.
void ot__class_names_write(ot__buf *text, const char *const *names, int n);
// OT_ERR_FORMAT when it is no list of different strings in order.
ot_status ot__class_names_read(ot__arena *arena, const char *text, const char ***names, int *n);

#endif
