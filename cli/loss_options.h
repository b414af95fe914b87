// SPDX-License-Identifier: Apache-2.0
// --loss: the terms of a weighted sum.
#ifndef CLI_LOSS_OPTIONS_H
#define CLI_LOSS_OPTIONS_H

#include "onnxtrain/artifacts.h"
#include "options.h"

typedef struct loss_terms {
    ot_loss_options *items; // what the library takes
    char **names;           // memory of each term's names
    ot_model **custom;      // each term's model, or NULL
    int count;
} loss_terms;

// "[WEIGHT*]LOSS[:VALUE[=TARGET]]" for each text; values are names of `model`. The exit code, after
// a message when it is not EXIT_SUCCESS.
int loss_terms_parse(loss_terms *terms, const text_list *texts, const ot_model *model);
void loss_terms_deinit(loss_terms *terms);

#endif
